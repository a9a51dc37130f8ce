// ranks 3
// Put and load in one phase.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush_all(win);
#ifdef FIXED
    barrier();
#endif
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Win_unlock_all(win);
}

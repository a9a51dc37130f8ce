// ranks 3
// A barrier does not complete a put.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
    MPI_Win_flush_all(win);
#endif
    barrier();
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Win_unlock_all(win);
}

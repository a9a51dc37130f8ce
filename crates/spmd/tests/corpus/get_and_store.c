// ranks 3
// Get and store in one phase.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush_all(win);
#ifdef FIXED
    barrier();
#endif
    if (rank == 1)
        mem[2] = 5; // race(a)
    MPI_Win_unlock_all(win);
}

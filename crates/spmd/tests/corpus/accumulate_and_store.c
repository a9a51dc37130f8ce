// ranks 3
// Accumulate and store in one phase.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_SUM, win); // race(a)
    MPI_Win_flush_all(win);
#ifdef FIXED
    barrier();
#endif
    if (rank == 1)
        mem[2] = 5; // race(a)
    MPI_Win_unlock_all(win);
}

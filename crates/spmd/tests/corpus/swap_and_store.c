// ranks 3
// A compare-and-swap is atomic with accumulates, not with stores.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    int zero = 0;
    if (rank == 0)
        MPI_Compare_and_swap(&one, &zero, out, MPI_INT, 1, 2, win); // race(a)
    if (rank == 1)
#ifdef FIXED
        MPI_Accumulate(&two, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_REPLACE, win);
#else
        mem[2] = 4; // race(a)
#endif
    MPI_Win_unlock_all(win);
}

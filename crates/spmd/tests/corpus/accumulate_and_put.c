// ranks 3
// Accumulates exclude each other, not puts.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_SUM, win); // race(a)
    if (rank == 2)
#ifdef FIXED
        MPI_Accumulate(&two, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_SUM, win);
#else
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#endif
    MPI_Win_unlock_all(win);
}

// ranks 3
// Elements that are shifted by a byte do not exclude each other.
#define UNIT 1
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 8, 1, MPI_INT, MPI_SUM, win); // race(a)
    if (rank == 2)
#ifdef FIXED
        MPI_Accumulate(&two, 1, MPI_INT, 1, 8, 1, MPI_INT, MPI_SUM, win);
#else
        MPI_Accumulate(&two, 1, MPI_INT, 1, 9, 1, MPI_INT, MPI_SUM, win); // race(a)
#endif
    MPI_Win_unlock_all(win);
}

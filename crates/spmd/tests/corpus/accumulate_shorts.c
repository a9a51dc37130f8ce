// ranks 3
// Accumulates of ints and of shorts do not exclude each other.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    short words[2] = {1, 1};
    (void)words;
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_SUM, win); // race(a)
    if (rank == 2)
#ifdef FIXED
        MPI_Accumulate(&two, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_SUM, win);
#else
        MPI_Accumulate(words, 2, MPI_SHORT, 1, 2, 2, MPI_SHORT, MPI_SUM, win); // race(a)
#endif
    MPI_Win_unlock_all(win);
}

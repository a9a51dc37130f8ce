// ranks 3
// Four contiguous ints are ints.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Datatype four;
    int values[4] = {1, 2, 3, 4};
#ifdef FIXED
    MPI_Type_contiguous(4, MPI_INT, &four);
#else
    MPI_Type_contiguous(8, MPI_SHORT, &four);
#endif
    MPI_Type_commit(&four);
    if (rank == 0)
        MPI_Accumulate(values, 1, four, 1, 0, 1, four, MPI_SUM, win); // race(a)
    if (rank == 2)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_SUM, win); // race(a)
    MPI_Type_free(&four);
    MPI_Win_unlock_all(win);
}

// ranks 3
// A get is not atomic; a get-accumulate with no operation is.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_SUM, win); // race(a)
    if (rank == 2)
#ifdef FIXED
        MPI_Get_accumulate(NULL, 0, MPI_INT, out, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_NO_OP, win);
#else
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#endif
    MPI_Win_unlock_all(win);
}

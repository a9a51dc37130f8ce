// ranks 3
// An atomic read is atomic with accumulates, not with puts.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Get_accumulate(NULL, 0, MPI_INT, out, 1, MPI_INT, 1, 2, 1, MPI_INT, MPI_NO_OP, win); // race(a)
    if (rank == 2)
#ifdef FIXED
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win);
#else
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#endif
    MPI_Win_unlock_all(win);
}

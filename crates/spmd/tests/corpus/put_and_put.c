// ranks 3
// Two origins put to one element.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
    if (rank == 2)
        MPI_Put(&two, 1, MPI_INT, 1, 3, 1, MPI_INT, win);
#else
    if (rank == 2)
        MPI_Put(&two, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#endif
    MPI_Win_unlock_all(win);
}

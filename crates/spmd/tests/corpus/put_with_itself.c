// ranks 3
// All ranks put to one element at the same line.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
#ifdef FIXED
    if (rank == 0)
#endif
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_unlock_all(win);
}

// ranks 3
// Puts of one origin are not ordered.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
        MPI_Win_flush(1, win);
#endif
        MPI_Put(&two, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    }
    MPI_Win_unlock_all(win);
}

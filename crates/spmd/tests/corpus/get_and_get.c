// ranks 3
// Two gets do not race; a put and a get do.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    if (rank == 2)
#ifdef FIXED
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win);
#else
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#endif
    MPI_Win_unlock_all(win);
}

// ranks 3
// To wait for the request of a get completes it.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Request request;
        MPI_Rget(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win, &request); // race(a)
#ifdef FIXED
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
        use(out[0]); // race(a)
#ifndef FIXED
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    }
    MPI_Win_unlock_all(win);
}

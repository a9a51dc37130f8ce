// ranks 3
// A send reads its buffer until it is complete.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Request request;
    if (rank == 0) {
        MPI_Isend(out, 4, MPI_INT, 1, 5, MPI_COMM_WORLD, &request); // race(a)
#ifdef FIXED
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
        out[2] = 1; // race(a)
#ifndef FIXED
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    }
    if (rank == 1)
        MPI_Recv(out, 4, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
}

// ranks 3
// The first message of two says nothing of what is between them.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Send(&one, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
        MPI_Win_flush(1, win);
        MPI_Send(&one, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    }
    if (rank == 1) {
        MPI_Request requests[2];
        MPI_Irecv(&out[0], 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&out[1], 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &requests[1]);
#ifdef FIXED
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
#else
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
#endif
        use(mem[2]); // race(a)
#ifndef FIXED
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
#endif
    }
    MPI_Win_unlock_all(win);
}

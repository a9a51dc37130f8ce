// ranks 3
// Between MPI_Ibarrier and MPI_Wait nothing is ordered.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Request request;
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush_all(win);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
#ifdef FIXED
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    if (rank == 1)
        use(mem[2]); // race(a)
#ifndef FIXED
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    MPI_Win_unlock_all(win);
}

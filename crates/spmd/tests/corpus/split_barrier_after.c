// ranks 3
// What comes between MPI_Ibarrier and MPI_Wait is not before what follows it elsewhere.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Request request;
#ifdef FIXED
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win);
    MPI_Win_flush_all(win);
#endif
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
#ifndef FIXED
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush_all(win);
#endif
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Win_unlock_all(win);
}

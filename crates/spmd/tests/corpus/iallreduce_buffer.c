// ranks 3
// A nonblocking collective uses its buffers until it is complete.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Request request;
    int sum;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request); // race(a)
#ifdef FIXED
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    use(sum); // race(a)
#ifndef FIXED
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    MPI_Win_unlock_all(win);
}

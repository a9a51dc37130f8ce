// ranks 3
// A receive writes its buffer until it is complete.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Request request;
    if (rank == 0)
        MPI_Send(out, 4, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (rank == 1) {
        int done = 0;
        MPI_Irecv(out, 4, MPI_INT, 0, 5, MPI_COMM_WORLD, &request); // race(a)
#ifdef FIXED
        while (!done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
#endif
        use(out[2]); // race(a)
        if (!done)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
}

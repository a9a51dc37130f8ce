// ranks 3
// To wait for the request of a put completes it at the origin only.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Request request;
        MPI_Rput(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win, &request); // race(a)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#ifdef FIXED
        MPI_Win_flush(1, win);
#endif
    }
    barrier();
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Win_unlock_all(win);
}

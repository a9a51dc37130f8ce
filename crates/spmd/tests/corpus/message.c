// ranks 3
// A message orders what was complete before it.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
        MPI_Win_flush(1, win);
#endif
        MPI_Send(&one, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    }
    if (rank == 1) {
        MPI_Recv(out, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        use(mem[2]); // race(a)
    }
    MPI_Win_unlock_all(win);
}

// ranks 3
// A chain of messages with wildcards orders three ranks.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
        MPI_Win_flush(1, win);
        MPI_Send(&one, 1, MPI_INT, 2, 5, MPI_COMM_WORLD);
    }
    if (rank == 2) {
#ifdef FIXED
        MPI_Recv(out, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&one, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
#else
        MPI_Send(&one, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
        MPI_Recv(out, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
    }
    if (rank == 1) {
        MPI_Recv(out, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        use(mem[2]); // race(a)
    }
    MPI_Win_unlock_all(win);
}

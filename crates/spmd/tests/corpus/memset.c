// ranks 3
// A put into memory that its owner sets by a call, in each of many rounds.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < 50; round++) {
        if (rank == 0) {
            MPI_Put(&one, 1, MPI_INT, 1, 4, 1, MPI_INT, win); // race(a)
            MPI_Win_flush(1, win);
#ifdef FIXED
            MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
        }
        if (rank == 1) {
#ifdef FIXED
            MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
            memset(mem, 0, sizeof(int) * (size_t)(WORDS - round)); // race(a)
#ifdef FIXED
            MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
#endif
        }
    }
    MPI_Win_unlock_all(win);
}

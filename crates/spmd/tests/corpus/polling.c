// ranks 3
// A flag of the program orders this execution; that is not promised.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // predicted(data) unmet
        MPI_Win_flush(1, win);
#ifdef FIXED
        MPI_Send(&one, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
#else
        MPI_Put(&one, 1, MPI_INT, 1, 3, 1, MPI_INT, win); // race(flag) chance
        MPI_Win_flush(1, win);
#endif
    }
    if (rank == 1) {
#ifdef FIXED
        MPI_Recv(out, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
        int flag = 0, done;
        while (!flag) {
            MPI_Win_sync(win);
            flag = *(volatile int *)&mem[3]; // race(flag) chance
            MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
        }
#endif
        use(mem[2]); // predicted(data) unmet
    }
    MPI_Win_unlock_all(win);
}

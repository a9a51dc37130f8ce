// ranks 3
// A barrier orders only the ranks of its communicator.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Comm pair;
#ifdef FIXED
    int color = rank == 2;
#else
    int color = rank == 1;
#endif
    MPI_Comm_split(MPI_COMM_WORLD, color, rank, &pair);
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush_all(win);
    MPI_Barrier(pair);
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Comm_free(&pair);
    MPI_Win_unlock_all(win);
}

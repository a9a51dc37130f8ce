// ranks 3
// A receive into a window is a write.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 2)
        MPI_Send(&one, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(&mem[2], 1, MPI_INT, 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (rank == 0)
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_unlock_all(win);
}

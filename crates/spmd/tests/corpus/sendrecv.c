// ranks 3
// To send and receive orders both ways.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    int partner = rank == 0 ? 1 : 0;
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush_all(win);
    if (rank < 2)
#ifdef FIXED
        MPI_Sendrecv(&one, 1, MPI_INT, partner, 5, out, 1, MPI_INT, partner, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
        MPI_Sendrecv(&one, 1, MPI_INT, rank, 5, out, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
    if (rank == 1)
        use(mem[2]); // race(a)
    (void)partner;
    MPI_Win_unlock_all(win);
}

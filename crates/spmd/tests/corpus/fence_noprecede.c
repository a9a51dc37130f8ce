// ranks 3
// A fence with MPI_MODE_NOPRECEDE is no barrier.
#include "corpus.h"

static void body(void) {
    if (rank == 1)
        mem[2] = 3; // race(a)
#ifdef FIXED
    MPI_Win_fence(0, win);
#else
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
#endif
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_fence(0, win);
}

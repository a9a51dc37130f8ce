// ranks 3
// A put reads its origin until it is complete there.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        out[3] = 7;
        MPI_Put(&out[3], 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
        MPI_Win_flush_local(1, win);
#endif
        out[3] = 8; // race(a)
    }
    MPI_Win_unlock_all(win);
}

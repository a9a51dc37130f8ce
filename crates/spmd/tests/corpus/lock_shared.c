// ranks 3
// Shared locks exclude no other shared lock.
#include "corpus.h"

static void body(void) {
#ifdef FIXED
    int type = MPI_LOCK_EXCLUSIVE;
#else
    int type = MPI_LOCK_SHARED;
#endif
    if (rank != 1) {
        MPI_Win_lock(type, 1, 0, win);
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
        MPI_Win_unlock(1, win);
    }
}

// ranks 3
// A lock of another window is a mutex if all use the same target, and the put is complete.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    static MPI_Win mutex;
    int *unused;
    MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &unused, &mutex);
    if (rank != 1) {
#ifdef FIXED
        int target = 0;
#else
        int target = rank;
#endif
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, mutex);
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
        MPI_Win_flush(1, win);
        MPI_Win_unlock(target, mutex);
    }
    MPI_Win_free(&mutex);
    MPI_Win_unlock_all(win);
}

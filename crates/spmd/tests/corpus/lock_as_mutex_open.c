// ranks 3
// A mutex does not protect a put that outlives it.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    static MPI_Win mutex;
    int *unused;
    MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &unused, &mutex);
    if (rank != 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, mutex);
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
        MPI_Win_flush(1, win);
#endif
        MPI_Win_unlock(0, mutex);
    }
    MPI_Win_free(&mutex);
    MPI_Win_unlock_all(win);
}

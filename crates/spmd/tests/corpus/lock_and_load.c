// ranks 3
// The owner has to lock its own window as well.
#include "corpus.h"

static void body(void) {
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
        MPI_Win_unlock(1, win);
    }
    if (rank == 1) {
#ifdef FIXED
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
#endif
        use(mem[2]); // race(a)
#ifdef FIXED
        MPI_Win_unlock(1, win);
#endif
    }
}

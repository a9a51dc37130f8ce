// ranks 3
// A get writes its origin until it is complete there.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Get(&out[3], 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
        MPI_Win_flush_local(1, win);
#endif
        use(out[3]); // race(a)
    }
    MPI_Win_unlock_all(win);
}

// ranks 3
// The result of a fetch is there after a flush.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Fetch_and_op(&one, &out[3], MPI_INT, 1, 2, MPI_SUM, win); // race(a)
#ifdef FIXED
        MPI_Win_flush(1, win);
#endif
        use(out[3]); // race(a)
    }
    MPI_Win_unlock_all(win);
}

// ranks 3
// flush_local lets a get of the same origin overtake a put.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
        MPI_Win_flush(1, win);
#else
        MPI_Win_flush_local(1, win);
#endif
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    }
    MPI_Win_unlock_all(win);
}

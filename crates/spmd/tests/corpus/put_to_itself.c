// ranks 3
// A rank that puts to itself has to flush as well.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
        MPI_Win_flush(1, win);
#endif
        use(mem[2]); // race(a)
    }
    MPI_Win_unlock_all(win);
}

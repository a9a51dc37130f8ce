// ranks 3
// A lock that was given back protects nothing, but may have ordered the two in this execution.
#include "corpus.h"

static void body(void) {
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // predicted(a)
        MPI_Win_unlock(1, win);
    }
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
#ifdef FIXED
        use(mem[2]);
#endif
        MPI_Win_unlock(1, win);
#ifndef FIXED
        use(mem[2]); // predicted(a)
#endif
    }
}

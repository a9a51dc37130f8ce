// ranks 3
// A broadcast orders the others after its root.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    int value = 0;
#ifdef FIXED
    int root = 0;
#else
    int root = 2;
#endif
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush_all(win);
    MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Win_unlock_all(win);
}

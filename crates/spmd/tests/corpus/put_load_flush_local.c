// ranks 3
// flush_local completes a put at the origin only.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#ifdef FIXED
    MPI_Win_flush_all(win);
#else
    MPI_Win_flush_local_all(win);
#endif
    barrier();
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Win_unlock_all(win);
}

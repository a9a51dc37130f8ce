// ranks 3
// A fetch-and-op is atomic with accumulates, not with loads.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Fetch_and_op(&one, out, MPI_INT, 1, 2, MPI_SUM, win); // race(a)
    MPI_Win_flush_all(win);
#ifdef FIXED
    barrier();
#endif
    if (rank == 1)
        use(mem[2]); // race(a)
    MPI_Win_unlock_all(win);
}

// ranks 3
// A flag that is set and read atomically may have ordered the two.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // predicted(a) unmet
        MPI_Win_flush(1, win);
        MPI_Accumulate(&one, 1, MPI_INT, 1, 3, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Win_flush(1, win);
    }
#ifdef FIXED
    barrier();
#endif
    if (rank == 2) {
        int flag = 0;
        while (!flag) {
            MPI_Fetch_and_op(NULL, &flag, MPI_INT, 1, 3, MPI_NO_OP, win);
            MPI_Win_flush(1, win);
        }
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // predicted(a) unmet
    }
    MPI_Win_unlock_all(win);
}

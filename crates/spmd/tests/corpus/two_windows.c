// ranks 3
// Two windows of the same memory: a flush of one does not complete a put in the other.
#include "corpus.h"

static void body(void) {
    MPI_Win other;
    MPI_Win_create(mem, sizeof(int) * WORDS, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, other);
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, other); // race(a)
#ifdef FIXED
    MPI_Win_flush_all(other);
#else
    MPI_Win_flush_all(win);
#endif
    barrier();
    if (rank == 2)
        MPI_Get(out, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_unlock_all(other);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&other);
}

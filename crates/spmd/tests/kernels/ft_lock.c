// ranks 4
// FT 2.3: a sum is protected by a lock, and each rank has its own one.
#include "kernel.h"

enum { SUM, WORDS };

static int kernel(void) {
    MPI_Win mutex;
    share(WORDS);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mutex);
    barrier();
    for (int step = 0; step < scale; step++) {
        long sum, mine = rank + 1;
#ifdef FIXED
        int holder = 0;
#else
        int holder = rank;
#endif
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, holder, 0, mutex);
        GET(&sum, 0, SUM); // race(read and write)
        MPI_Win_flush(0, win);
        sum += mine;
        PUT(&sum, 0, SUM); // race(read and write) race(two writes)
        MPI_Win_flush(0, win);
        MPI_Win_unlock(holder, mutex);
    }
    barrier();
    int right = rank != 0 || mem[SUM] == (long)scale * size * (size + 1) / 2;
    MPI_Win_free(&mutex);
    return right;
}

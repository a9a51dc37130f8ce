// ranks 3
// A barrier orders what its own thread knows, not the put of another thread.
#include "corpus.h"

static void *puts_one(void *unused) {
    MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
    MPI_Win_flush(1, win);
    return unused;
}

static void body(void) {
    MPI_Win_lock_all(0, win);
    pthread_t thread;
    if (rank == 0)
        pthread_create(&thread, NULL, puts_one, NULL);
#ifdef FIXED
    if (rank == 0)
        pthread_join(thread, NULL);
#endif
    barrier();
    if (rank == 1)
        use(mem[2]); // race(a)
    barrier();
#ifndef FIXED
    if (rank == 0)
        pthread_join(thread, NULL);
#endif
    MPI_Win_unlock_all(win);
}

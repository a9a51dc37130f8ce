// ranks 3
// A barrier orders what its own thread knows, not the put of another thread. Here the put is always complete before the
// barrier, and only the rules let the two race: they are never in flight at once.
#include "corpus.h"
#include <stdatomic.h>

// Says that the put was made, and orders nothing.
static atomic_int made;

static void *puts_one(void *unused) {
    MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a) unmet
    MPI_Win_flush(1, win);
    atomic_store_explicit(&made, 1, memory_order_relaxed);
    return unused;
}

static void body(void) {
    MPI_Win_lock_all(0, win);
    pthread_t thread;
    if (rank == 0)
        pthread_create(&thread, NULL, puts_one, NULL);
    while (rank == 0 && !atomic_load_explicit(&made, memory_order_relaxed))
        ;
#ifdef FIXED
    if (rank == 0)
        pthread_join(thread, NULL);
#endif
    barrier();
    if (rank == 1)
        use(mem[2]); // race(a) unmet
    barrier();
#ifndef FIXED
    if (rank == 0)
        pthread_join(thread, NULL);
#endif
    MPI_Win_unlock_all(win);
}

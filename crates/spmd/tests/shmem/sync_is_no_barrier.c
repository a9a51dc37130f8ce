// ranks 3
// shmem_sync_all waits for all ranks and completes nothing.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
    delay();
#ifdef FIXED
    shmem_barrier_all();
#else
    shmem_sync_all();
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

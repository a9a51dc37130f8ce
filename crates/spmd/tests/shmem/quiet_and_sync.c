// ranks 3
// shmem_quiet and shmem_sync_all together are a barrier.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
    shmem_quiet();
#else
    shmem_fence();
#endif
    shmem_sync_all();
    if (me == 1)
        use(mem[2]); // race(a)
}

// ranks 3
// shmem_sync of some ranks completes nothing, shmem_barrier does.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
    if (me < 2) {
#ifdef FIXED
        shmem_barrier(0, 0, 2, sync_work);
#else
        shmem_sync(0, 0, 2, sync_work);
#endif
    }
    if (me == 1)
        use(mem[2]); // race(a)
}

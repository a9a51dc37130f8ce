// ranks 3
// A barrier of some ranks orders those only.
#include "corpus.h"

static void body(void) {
    if (me == 2)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
    shmem_barrier_all();
#else
    if (me < 2)
        shmem_barrier(0, 0, 2, sync_work);
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

// ranks 3
// A reduction of all ranks orders them, and completes nothing.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
    shmem_quiet();
#endif
    shmem_int_sum_to_all(&other[8], &other[0], 1, 0, 0, size, reduce_work, sync_all_work);
    if (me == 1)
        use(mem[2]); // race(a)
}

// ranks 3
// A broadcast orders the root before the others, and not the others among themselves.
#include "corpus.h"

static void body(void) {
#ifdef FIXED
    int root = 0;
#else
    int root = 2;
#endif
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
        shmem_quiet();
    }
    shmem_broadcast32(&other[8], &other[0], 1, root, 0, 0, size, sync_all_work);
    if (me == 1)
        use(mem[2]); // race(a)
}

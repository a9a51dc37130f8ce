// ranks 3
// Two puts of one rank to one element are not ordered without a fence.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
        shmem_fence();
#endif
        shmem_int_put(&mem[2], &two, 1, 1); // race(a)
    }
}

// ranks 3
// A fence orders what goes to one rank, not to different ones.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
        shmem_quiet();
#else
        shmem_fence();
#endif
        shmem_int_p(&flag, 1, 2);
    }
    if (me == 2) {
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
        shmem_int_get(other, &mem[2], 1, 1); // race(a)
    }
}

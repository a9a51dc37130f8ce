// ranks 3
// Waiting for a flag that was raised before says nothing of another one.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_p(&flag2, 1, 1);
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
        shmem_fence();
        shmem_int_p(&flag, 1, 1);
    }
    if (me == 1) {
#ifdef FIXED
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
#else
        shmem_int_wait_until(&flag2, SHMEM_CMP_EQ, 1);
#endif
        use(mem[2]); // race(a)
    }
}

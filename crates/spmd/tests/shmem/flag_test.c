// ranks 3
// shmem_test in a loop waits as shmem_wait_until does. The get lets puts of others arrive, which Open MPI's shmem_test
// does not.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
        shmem_fence();
#else
        delay();
#endif
        shmem_int_p(&flag, 1, 1);
    }
    if (me == 1) {
        while (!shmem_int_test(&flag, SHMEM_CMP_EQ, 1))
            shmem_int_g(&mem[9], 2);
        use(mem[2]); // race(a)
    }
}

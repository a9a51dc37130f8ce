// ranks 3
// An atomic operation raises the flag.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
        shmem_quiet();
#else
        delay();
#endif
        shmem_int_atomic_set(&flag, 1, 1);
    }
    if (me == 1) {
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
        use(mem[2]); // race(a)
    }
}

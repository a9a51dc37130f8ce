// ranks 3
// Rank 1 has seen the flag of rank 0 and raises that of rank 2.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
        shmem_fence();
#endif
        shmem_int_p(&flag, 1, 1);
    }
    if (me == 1) {
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
        shmem_int_p(&flag2, 1, 2);
    }
    if (me == 2) {
        shmem_int_wait_until(&flag2, SHMEM_CMP_EQ, 1);
        shmem_int_get(other, &mem[2], 1, 1); // race(a)
    }
}

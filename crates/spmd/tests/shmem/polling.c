// ranks 3
// A flag of the program orders this execution; that is not promised.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // predicted(data) unmet
        shmem_quiet();
        shmem_int_p(&flag, 1, 1); // race(flag) chance
        shmem_quiet();
    }
    if (me == 1) {
#ifdef FIXED
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
#else
        while (!*(volatile int *)&flag) // race(flag) chance
            shmem_int_g(&mem[9], 2);
#endif
        use(mem[2]); // predicted(data) unmet
    }
}

// ranks 3
// A flag that is raised after shmem_quiet.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
        shmem_quiet();
#else
        delay();
#endif
        shmem_int_p(&flag, 1, 1);
    }
    if (me == 1) {
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
        use(mem[2]); // race(a)
    }
}

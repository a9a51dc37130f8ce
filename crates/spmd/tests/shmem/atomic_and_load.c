// ranks 3
// An atomic operation and a load.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_atomic_add(&mem[2], 1, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

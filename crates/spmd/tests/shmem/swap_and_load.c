// ranks 3
// An atomic exchange and a load.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        use(shmem_int_atomic_swap(&mem[2], 5, 1)); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

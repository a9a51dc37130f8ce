// ranks 3
// A put by size and a load.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_put32(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

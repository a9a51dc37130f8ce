// ranks 3
// A put of one element and a load.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_p(&mem[2], 5, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

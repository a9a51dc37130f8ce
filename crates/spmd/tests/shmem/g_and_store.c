// ranks 3
// A get of one element and a store.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        use(shmem_int_g(&mem[2], 1)); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        mem[2] = 7; // race(a)
}

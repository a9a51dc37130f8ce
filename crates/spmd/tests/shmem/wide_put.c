// ranks 3
// A put of many elements and a store to one of them.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_put(mem, other, 16, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        mem[15] = 7; // race(a)
}

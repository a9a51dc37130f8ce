// ranks 3
// A strided get and a store to one of its elements.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_iget(other, mem, 1, 3, 4, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        mem[6] = 7; // race(a)
}

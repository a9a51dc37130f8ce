// ranks 3
// A nonblocking get and a store.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_get_nbi(other, &mem[2], 1, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        mem[2] = 7; // race(a)
}

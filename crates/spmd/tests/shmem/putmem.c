// ranks 3
// A put of bytes and a store to one of them.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_putmem((char *)&mem[2] + 2, &one, 3, 1); // race(a)
    if (me == 1) {
#ifdef FIXED
        mem[4] = 7;
#else
        mem[3] = 7; // race(a)
#endif
    }
}

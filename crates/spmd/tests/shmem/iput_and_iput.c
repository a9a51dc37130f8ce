// ranks 3
// Strided puts that share elements, and that interleave.
#include "corpus.h"

static void body(void) {
#ifdef FIXED
    if (me != 1)
        shmem_int_iput(&mem[me / 2], other, 2, 1, 4, 1);
#else
    if (me != 1)
        shmem_int_iput(mem, other, 2, 1, 4, 1); // race(a)
#endif
}

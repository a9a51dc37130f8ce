// ranks 3
// A blocking put has read its source when it returns; a nonblocking one has not.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
#ifdef FIXED
        shmem_int_put(&mem[2], other, 4, 1);
#else
        shmem_int_put_nbi(&mem[2], other, 4, 1); // race(a)
#endif
        other[3] = 7; // race(a)
    }
}

// ranks 3
// A nonblocking put reads its source until shmem_quiet.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put_nbi(&mem[2], other, 1, 1); // race(a)
#ifdef FIXED
        shmem_quiet();
#endif
        other[0] = 7; // race(a)
    }
}

// ranks 3
// A nonblocking get writes until shmem_quiet.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_get_nbi(other, &mem[2], 1, 1); // race(a)
#ifdef FIXED
        shmem_quiet();
#endif
        use(other[0]); // race(a)
    }
}

// ranks 3
// Two nonblocking puts.
#include "corpus.h"

static void body(void) {
#ifdef FIXED
    if (me != 1)
        shmem_int_put_nbi(&mem[2 + me], &one, 1, 1);
#else
    if (me != 1)
        shmem_int_put_nbi(&mem[2], &one, 1, 1); // race(a)
#endif
}

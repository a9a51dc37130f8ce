// ranks 3
// A nonblocking put and a load.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_put_nbi(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

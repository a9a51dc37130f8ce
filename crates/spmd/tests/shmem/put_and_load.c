// ranks 3
// A put and a load of the owner.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        use(mem[2]); // race(a)
}

// ranks 3
// An atomic operation and a put of another rank.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_atomic_inc(&mem[2], 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 2)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
}

// ranks 3
// Atomic operations on different types are not atomic to each other.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_long_atomic_add(&wide[1], 1, 1); // race(a)
    if (me == 2) {
#ifdef FIXED
        shmem_long_atomic_inc(&wide[1], 1);
#else
        shmem_int_atomic_inc((int *)&wide[1], 1); // race(a)
#endif
    }
}

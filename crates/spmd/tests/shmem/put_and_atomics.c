// ranks 3
// Puts race where atomic operations do not.
#include "corpus.h"

static void body(void) {
#ifdef FIXED
    if (me != 1)
        shmem_int_atomic_add(&mem[2], 1, 1);
#else
    if (me != 1)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#endif
}

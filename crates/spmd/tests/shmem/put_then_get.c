// ranks 3
// A fence orders puts, not gets.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#ifdef FIXED
        shmem_quiet();
#else
        shmem_fence();
#endif
        shmem_int_get(other, &mem[2], 1, 1); // race(a)
    }
}

// ranks 3
// A get writes memory that another rank puts into.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_int_get(&mem[4], &mem[2], 1, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 2)
        shmem_int_put(&mem[4], &one, 1, 0); // race(a)
}

// ranks 3
// Two ranks put to the same element of a third.
#include "corpus.h"

static void body(void) {
#ifdef FIXED
    if (me != 1)
        shmem_int_put(&mem[2 + me], &one, 1, 1);
#else
    if (me != 1)
        shmem_int_put(&mem[2], &one, 1, 1); // race(a)
#endif
}

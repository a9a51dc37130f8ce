// ranks 3
// Two ranks put one element to the same place.
#include "corpus.h"

static void body(void) {
#ifdef FIXED
    if (me != 1)
        shmem_int_p(&mem[2 + me], me, 1);
#else
    if (me != 1)
        shmem_int_p(&mem[2], me, 1); // race(a)
#endif
}

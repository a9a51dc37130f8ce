// ranks 3
// A put to oneself is in flight, too.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_int_put(&mem[2], &one, 1, 0); // race(a)
#ifdef FIXED
        shmem_quiet();
#endif
        use(mem[2]); // race(a)
    }
}

// ranks 3
// Static variables are symmetric, too.
#include "corpus.h"

static void body(void) {
    if (me == 0)
        shmem_long_p(&wide[1], 5, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        wide[1] = 7; // race(a)
}

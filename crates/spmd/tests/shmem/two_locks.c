// ranks 3
// Different locks protect nothing.
#include "corpus.h"

static void body(void) {
    if (me != 1) {
#ifdef FIXED
        long *mine = &lock;
#else
        long *mine = me == 0 ? &lock : &lock2;
#endif
        shmem_set_lock(mine);
        shmem_int_p(&mem[2], 5, 1); // race(a)
        shmem_clear_lock(mine);
    }
}

// ranks 3
// What is put after shmem_clear_lock is not protected.
#include "corpus.h"

static void body(void) {
    if (me != 1) {
        shmem_set_lock(&lock);
#ifdef FIXED
        shmem_int_put_nbi(&mem[2], &one, 1, 1);
#endif
        shmem_clear_lock(&lock);
#ifndef FIXED
        shmem_int_put_nbi(&mem[2], &one, 1, 1); // race(a)
#endif
    }
}

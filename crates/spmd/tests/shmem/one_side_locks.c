// ranks 3
// A lock that only one rank takes protects nothing.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
        shmem_set_lock(&lock);
        shmem_int_p(&mem[2], 5, 1); // race(a)
        shmem_clear_lock(&lock);
    }
    if (me == 2) {
#ifdef FIXED
        shmem_set_lock(&lock);
#endif
        shmem_int_p(&mem[2], 6, 1); // race(a)
#ifdef FIXED
        shmem_clear_lock(&lock);
#endif
    }
}

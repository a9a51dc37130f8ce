// ranks 3
// An atomic operation that fetches nothing may be in flight after it returns.
#include "corpus.h"

static void body(void) {
    if (me == 0) {
#ifdef FIXED
        use(shmem_int_atomic_fetch_add(&mem[2], 1, 1));
#else
        shmem_int_atomic_add(&mem[2], 1, 1); // race(a)
#endif
    }
    shmem_sync_all();
    if (me == 1)
        use(mem[2]); // race(a)
}

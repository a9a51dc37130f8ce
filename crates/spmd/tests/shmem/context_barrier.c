// ranks 3
// A barrier completes the default context only.
#include "corpus.h"

static void body(void) {
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    if (me == 0)
        shmem_ctx_int_p(ctx, &mem[2], 5, 1); // race(a)
#ifdef FIXED
    shmem_ctx_quiet(ctx);
#endif
    barrier();
    if (me == 1)
        use(mem[2]); // race(a)
    shmem_ctx_destroy(ctx);
}

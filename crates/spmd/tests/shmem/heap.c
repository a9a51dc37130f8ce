// ranks 3
// Memory of the symmetric heap.
#include "corpus.h"

static void body(void) {
    int *heap = shmem_malloc(sizeof(int) * 16);
    if (me == 0)
        shmem_int_put(&heap[3], &one, 1, 1); // race(a)
#ifdef FIXED
    barrier();
#endif
    if (me == 1)
        heap[3] = 7; // race(a)
    shmem_free(heap);
}

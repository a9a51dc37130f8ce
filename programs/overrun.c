// Shape: a write behind the end of a heap block, without a crash. Threads look whether a table has room and then take a
// slot of it; the two are two steps.
// Sizes: 3 10 20 50 100
// Idea: buffers that are full by the time of the write, as in logs and connection tables (Lu, Park, Seo and Zhou, ASPLOS
// 2008, atomicity violations).
// Shows: a write behind the end of a block, if another thread takes the last slot between the look and the write.
// Fixed: looks and takes the slot with the lock held.
#include "shape.h"
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *slots;
static int capacity;
static atomic_int used;

static void enter(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
}

static void leave(void) {
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

static void *append(void *arg) {
    enter();
    if (atomic_load(&used) < capacity) {
        int mine = atomic_fetch_add(&used, 1);
        slots[mine] = mine + 1;
    }
    leave();
    note(1);
    return arg;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    int count = family_size(argc, argv, 2);
    (void)lock;
    capacity = count > 1 ? count - 1 : 1;
    slots = calloc(capacity, sizeof *slots);
    for (int i = 0; i < count; i++) threads[i] = start(append, NULL);
    for (int i = 0; i < count; i++) join(threads[i]);
    free(slots);
    return 0;
}

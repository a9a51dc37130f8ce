// Shape: order violation among n threads. So many setters write a pair, a checker reads it.
// Sizes: 3 10 20 50 100
// Idea: `reorder_N` of the SCTBench collection (Thomson, Donaldson and Betts, PPoPP 2014).
// Shows: the assertion, if the checker comes between the two stores of the first setter.
// Fixed: pair and check are under one lock.
#include "shape.h"
#include <stdatomic.h>

static atomic_int a, b;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

static void *set(void *arg) {
    enter();
    atomic_store(&a, 1);
    atomic_store(&b, -1);
    leave();
    return arg;
}

static void *check(void *arg) {
    enter();
    int first = atomic_load(&a), second = atomic_load(&b);
    leave();
    assert((first == 0 && second == 0) || (first == 1 && second == -1));
    return arg;
}

int main(int argc, char **argv) {
    pthread_t setters[MOST];
    int count = size(argc, argv, 5);
    (void)lock;
    for (int i = 0; i < count; i++) setters[i] = start(set, NULL);
    pthread_t checker = start(check, NULL);
    for (int i = 0; i < count; i++) join(setters[i]);
    join(checker);
    return 0;
}

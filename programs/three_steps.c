// Shape: three steps of one computation, each under the lock, and another thread between them.
// Sizes: 3 10 20 50 100
// Idea: the arithmetic programs of the Inspect and SCTBench collections.
// Shows: the assertion, if an addition comes between two of the steps: it is then doubled once, not twice
// as before them and not at all as after them.
// Fixed: the three steps are one critical section.
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int value = 1;

static void *compute(void *arg) {
    pthread_mutex_lock(&lock);
    value *= 2;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    value += 3;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    value *= 2;
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *add(void *arg) {
    pthread_mutex_lock(&lock);
    value += 1;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    int count = size(argc, argv, 1);
    pthread_t computer = start(compute, NULL);
    for (int i = 0; i < count; i++) threads[i] = start(add, NULL);
    for (int i = 0; i < count; i++) join(threads[i]);
    join(computer);
    // Each addition counts four before the steps and one after them.
    assert((value - 10 - count) % 3 == 0);
    return 0;
}

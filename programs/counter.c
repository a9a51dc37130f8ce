// Shape: a counter that is not atomic: load, add, store.
// Idea: the oldest data race there is.
// Shows: the assertion, if an increment is lost.
// Fixed: increments under a lock.
#include "shape.h"

enum { THREADS = 3 };
int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *increment(void *arg) {
    note(*(const int *)arg);
#ifdef FIXED
    pthread_mutex_lock(&lock);
    counter++;
    pthread_mutex_unlock(&lock);
#else
    (void)lock;
    counter++;
#endif
    return NULL;
}

int main(void) {
    static int before[THREADS] = {0, 10, 20};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) threads[i] = start(increment, &before[i]);
    for (int i = 0; i < THREADS; i++) join(threads[i]);
    assert(counter == THREADS);
    return 0;
}

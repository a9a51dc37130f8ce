// Two locks in two orders, and a wrong fix.
// FIX 3: the first thread now takes the locks in a function of its own, still in the other order.
#include <pthread.h>
static pthread_mutex_t here = PTHREAD_MUTEX_INITIALIZER, there = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void *left(void *arg) {
#if FIX == 3
    both(&here, &there);
#else
    pthread_mutex_lock(&here);
    pthread_mutex_lock(&there);
    pthread_mutex_unlock(&there);
    pthread_mutex_unlock(&here);
#endif
    return arg;
}

static void *right(void *arg) {
#if FIX == 9
    both(&here, &there);
#else
    both(&there, &here);
#endif
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, left, 0);
    pthread_create(&b, 0, right, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}

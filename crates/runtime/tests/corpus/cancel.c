#include "corpus.h"
// A cancelled waiter holds the mutex again when its cleanup handler runs.
int x, waiting;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void clean(void *arg) {
#ifdef FIXED
    x++;
    pthread_mutex_unlock(&m);
#else
    pthread_mutex_unlock(&m);
    x++; // race(x)
#endif
    (void)arg;
}
static void *f(void *arg) {
    pthread_mutex_lock(&m);
    pthread_cleanup_push(clean, NULL);
    waiting = 1;
    for (;;) pthread_cond_wait(&c, &m);
    pthread_cleanup_pop(0);
    return arg;
}
int main(void) {
    pthread_t t = start(f, NULL);
    for (int ok = 0; !ok;) {
        pthread_mutex_lock(&m);
        ok = waiting;
        if (ok) x++;
        pthread_mutex_unlock(&m);
    }
    pthread_cancel(t);
#ifndef FIXED
    x++; // race(x)
#endif
    pthread_join(t, NULL);
    return 0;
}

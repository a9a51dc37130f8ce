#include "corpus.h"
// A condition is destroyed while a thread waits on it that no thread has woken.
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, waits;
static void *sleeps(void *arg) {
    pthread_mutex_lock(&m);
    waits = 1;
    while (!ready) pthread_cond_wait(&c, &m); // race(condition)
    pthread_mutex_unlock(&m);
    return arg;
}
static void *destroys(void *arg) {
    pthread_cond_destroy(&c); // race(condition)
    return arg;
}
int main(void) {
    pthread_t t = start(sleeps, NULL);
    for (int began = 0; !began; sched_yield()) {
        pthread_mutex_lock(&m);
        began = waits;
        pthread_mutex_unlock(&m);
    }
#ifdef FIXED
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    pthread_join(t, NULL);
    pthread_join(start(destroys, NULL), NULL);
#else
    // Destroying waits for the thread, and the thread for ever.
    start(destroys, NULL);
    usleep(100000);
    (void)t;
#endif
    _exit(0);
}

#include "corpus.h"
int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *arg) {
#ifdef FIXED
    while (pthread_mutex_trylock(&m) != 0) sched_yield();
    x++;
    pthread_mutex_unlock(&m);
#else
    int held = pthread_mutex_trylock(&m) == 0;
    x++; // race(x)
    if (held) abort();
#endif
    return arg;
}
int main(void) {
    pthread_mutex_lock(&m);
    pthread_t t = start(f, NULL);
#ifdef FIXED
    x++;
    pthread_mutex_unlock(&m);
    pthread_join(t, NULL);
#else
    x++; // race(x)
    pthread_join(t, NULL);
    pthread_mutex_unlock(&m);
#endif
    return 0;
}

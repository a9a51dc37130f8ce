#include "corpus.h"
// Mutexes that lend their owner a priority.
int inherited, protected;
static pthread_mutex_t lends, ceiling;
static void *f(void *arg) {
    pthread_mutex_lock(&lends);
#ifndef FIXED
    pthread_mutex_unlock(&lends);
#endif
    inherited++; // race(inherited)
#ifdef FIXED
    pthread_mutex_unlock(&lends);
    pthread_mutex_lock(&ceiling);
#endif
    protected++; // race(protected)
#ifdef FIXED
    pthread_mutex_unlock(&ceiling);
#endif
    return arg;
}
static void make(pthread_mutex_t *m, int protocol) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
    if (pthread_mutexattr_setprotocol(&a, protocol) != 0) abort();
    if (pthread_mutex_init(m, &a) != 0) abort();
}
int main(void) {
    make(&lends, PTHREAD_PRIO_INHERIT);
    make(&ceiling, PTHREAD_PRIO_NONE);
    both(f, f);
    return inherited != 2 || protected != 2;
}

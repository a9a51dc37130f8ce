#include "corpus.h"
// Mutexes that are destroyed while they are locked, unlocked by another thread, unlocked twice, or used after they
// were destroyed. A mutex that checks errors by itself may be tried.
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, foreign = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t twice = PTHREAD_MUTEX_INITIALIZER, gone = PTHREAD_MUTEX_INITIALIZER;
static void *unlocks(void *arg) {
#ifndef FIXED
    pthread_mutex_unlock(&foreign); // race(foreign)
#endif
    return arg;
}
int main(void) {
    pthread_mutex_t checks;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checks, &attributes);
    if (pthread_mutex_unlock(&checks) == 0) return 1;

    pthread_mutex_lock(&foreign); // other(foreign)
    pthread_join(start(unlocks, NULL), NULL);
#ifdef FIXED
    pthread_mutex_unlock(&foreign);
#endif
    pthread_mutex_lock(&twice);
    pthread_mutex_unlock(&twice);
#ifndef FIXED
    pthread_mutex_unlock(&twice); // race(twice)
#endif
    pthread_mutex_lock(&gone);
    pthread_mutex_unlock(&gone);
    pthread_mutex_destroy(&gone); // other(gone)
#ifdef FIXED
    pthread_mutex_init(&gone, NULL);
#endif
    pthread_mutex_lock(&gone); // race(gone)
#ifdef FIXED
    pthread_mutex_unlock(&gone);
#endif
    pthread_mutex_lock(&held); // other(held)
#ifdef FIXED
    pthread_mutex_unlock(&held);
#endif
    pthread_mutex_destroy(&held); // race(held)
    return 0;
}

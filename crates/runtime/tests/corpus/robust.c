#include "corpus.h"
#include <errno.h>
int x;
static pthread_mutex_t m;
static void *dies(void *arg) {
    pthread_mutex_lock(&m);
    x++; // race(x)
    return arg;
}
static void *inherits(void *arg) {
#ifdef FIXED
    int got = pthread_mutex_lock(&m);
    if (got == EOWNERDEAD) pthread_mutex_consistent(&m);
#endif
    x++; // race(x)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &a);
    both(dies, inherits);
    return 0;
}

#include "corpus.h"
int x, y;
static pthread_mutex_t m;
static void *f(void *arg) {
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
#ifndef FIXED
    pthread_mutex_unlock(&m);
#endif
    y++; // race(y)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
static void *g(void *arg) {
    pthread_mutex_lock(&m);
    x++;
#ifdef FIXED
    y++;
#endif
    pthread_mutex_unlock(&m);
#ifndef FIXED
    y++; // race(y)
#endif
    return arg;
}
int main(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&m, &a);
    pthread_t t = start(f, NULL);
    g(NULL);
    pthread_join(t, NULL);
    return x != 2;
}

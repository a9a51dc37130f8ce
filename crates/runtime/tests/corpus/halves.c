#include "corpus.h"
// Two ints in one word, each under its own lock, at different times.
struct { int a, b; } s __attribute__((aligned(8)));
static pthread_mutex_t ma = PTHREAD_MUTEX_INITIALIZER, mb = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *arg) {
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&ma);
        s.a++;
        pthread_mutex_unlock(&ma);
        pthread_mutex_lock(&mb);
        s.b++; // race(b)
        pthread_mutex_unlock(&mb);
    }
    return arg;
}
static void *g(void *arg) {
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&ma);
        s.a++;
#ifdef FIXED
        pthread_mutex_unlock(&ma);
        pthread_mutex_lock(&mb);
        s.b++;
        pthread_mutex_unlock(&mb);
#else
        pthread_mutex_unlock(&ma);
#endif
    }
    return arg;
}
int main(void) {
    pthread_t t = start(f, NULL);
    g(NULL);
#ifndef FIXED
    s.b++; // race(b)
#endif
    pthread_join(t, NULL);
    return s.a != 200;
}

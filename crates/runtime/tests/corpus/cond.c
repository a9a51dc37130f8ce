#include "corpus.h"
int ready, data;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void *producer(void *arg) {
#ifdef FIXED
    data = 42;
#endif
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
#ifndef FIXED
    data = 42; // race(data)
#endif
    return arg;
}
static void *consumer(void *arg) {
    pthread_mutex_lock(&m);
    while (!ready) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    return data ? arg : NULL; // race(data)
}
int main(void) { both(consumer, producer); return 0; }

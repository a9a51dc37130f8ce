#include "corpus.h"
#include <time.h>
int ready, data;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void *producer(void *arg) {
    data = 1; // race(data)
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    return arg;
}
static void *consumer(void *arg) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 600;
#ifndef FIXED
    int early = data; // race(data)
#else
    int early = 0;
#endif
    pthread_mutex_lock(&m);
    while (!ready) pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&m);
    return early + data ? arg : NULL;
}
int main(void) { both(producer, consumer); return 0; }

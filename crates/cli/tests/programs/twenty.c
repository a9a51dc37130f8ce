// Twenty threads that work under one lock and count without it: a race among many steps. Built with ROUNDS, each thread
// locks that often; with TWICE there is a second race.
#include <assert.h>
#include <pthread.h>

#ifndef ROUNDS
#define ROUNDS 50
#endif
#define THREADS 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static int finished;
#ifdef TWICE
static volatile long last;
#endif

static void *work(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        total += (long)arg;
        pthread_mutex_unlock(&lock);
    }
    finished++;
#ifdef TWICE
    last = (long)arg;
#endif
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    assert(finished == THREADS);
    return 0;
}

#include "corpus.h"
#include <errno.h>
#include <semaphore.h>
#include <time.h>
// Locks and semaphores with a clock of their own.
int x, y, data;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static sem_t s;
static struct timespec after(int seconds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += seconds;
    return time;
}
static void *f(void *arg) {
    struct timespec late = after(600);
#ifdef FIXED
    if (pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &late) != 0) abort();
#endif
    x++; // race(x)
#ifdef FIXED
    pthread_mutex_unlock(&m);
    if (pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &late) != 0) abort();
#else
    if (pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &late) != 0) abort();
#endif
    y++; // race(y)
    pthread_rwlock_unlock(&l);
    return arg;
}
static void *waits(void *arg) {
    struct timespec late = after(600), past = {0, 0};
    sem_t empty;
    sem_init(&empty, 0, 0);
    if (sem_clockwait(&empty, CLOCK_MONOTONIC, &past) == 0 || errno != ETIMEDOUT) abort();
#ifdef FIXED
    if (sem_clockwait(&s, CLOCK_MONOTONIC, &late) != 0) abort();
#endif
    data++; // race(data)
    return late.tv_sec ? arg : NULL;
}
int main(void) {
    sem_init(&s, 0, 0);
    both(f, f);
    pthread_t t = start(waits, NULL);
#ifndef FIXED
    data++; // race(data)
    pthread_join(t, NULL);
#else
    data++;
    sem_post(&s);
    pthread_join(t, NULL);
#endif
    return x != 2 || y != 2 || data != 2;
}

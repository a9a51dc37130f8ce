#include "corpus.h"
#include <errno.h>
#include <time.h>
int tried, timed, clocked;
static void *f(void *arg) {
    (*(int *)arg)++; // race(tried) race(timed) race(clocked)
    return NULL;
}
static struct timespec soon(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 100;
    return time;
}
int main(void) {
    pthread_t a = start(f, &tried), b = start(f, &timed), c = start(f, &clocked);
    struct timespec real = soon(CLOCK_REALTIME), steady = soon(CLOCK_MONOTONIC);
#ifdef FIXED
    while (pthread_tryjoin_np(a, NULL) == EBUSY) sched_yield();
    if (pthread_timedjoin_np(b, NULL, &real) != 0) abort();
    if (pthread_clockjoin_np(c, NULL, CLOCK_MONOTONIC, &steady) != 0) abort();
#endif
    tried++; // race(tried)
    timed++; // race(timed)
    clocked++; // race(clocked)
#ifndef FIXED
    while (pthread_tryjoin_np(a, NULL) == EBUSY) sched_yield();
    if (pthread_timedjoin_np(b, NULL, &real) != 0) abort();
    if (pthread_clockjoin_np(c, NULL, CLOCK_MONOTONIC, &steady) != 0) abort();
#endif
    return tried + timed + clocked < 3;
}

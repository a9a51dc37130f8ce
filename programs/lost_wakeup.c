// Shape: lost wake-up. The waiter looks at the flag without the lock and waits if it was not set.
// Idea: the textbook misuse of condition variables; in the study of Lu, Park, Seo and Zhou (ASPLOS 2008)
// it is among the order violations.
// Shows: a hang, if flag and notification come between the look and the wait.
// Fixed: looks with the lock held, again after each wake-up.
#include "shape.h"
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int ready;

static void *await(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
    while (!atomic_load(&ready)) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
#else
    if (!atomic_load(&ready)) {
        pthread_mutex_lock(&lock);
        pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
#endif
    return arg;
}

static void *announce(void *arg) {
    work(100);
    note(10);
    pthread_mutex_lock(&lock);
    atomic_store(&ready, 1);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t waiter = start(await, NULL), announcer = start(announce, NULL);
    join(waiter);
    join(announcer);
    return 0;
}

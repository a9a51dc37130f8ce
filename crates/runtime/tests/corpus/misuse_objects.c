#include "corpus.h"
#include <semaphore.h>
// Reader-writer locks, spinlocks, barriers, conditions and semaphores that are destroyed while they are in use, used
// after that, or used before they are initialised. What was destroyed may be initialised again, also by assignment.
static pthread_rwlock_t held = PTHREAD_RWLOCK_INITIALIZER, gone = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t foreign = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spins;
static pthread_barrier_t barrier;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t fresh, old;
static void *unlocks(void *arg) {
#ifndef FIXED
    pthread_rwlock_unlock(&foreign); // race(foreign)
#endif
    return arg;
}
int main(void) {
    pthread_rwlock_rdlock(&held); // other(held)
#ifdef FIXED
    pthread_rwlock_unlock(&held);
#endif
    pthread_rwlock_destroy(&held); // race(held)

    pthread_rwlock_wrlock(&foreign); // other(foreign)
    pthread_join(start(unlocks, NULL), NULL);
#ifdef FIXED
    pthread_rwlock_unlock(&foreign);
#endif
    pthread_rwlock_destroy(&gone); // other(gone)
#ifdef FIXED
    gone = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
#endif
    pthread_rwlock_wrlock(&gone); // race(gone)
    pthread_rwlock_unlock(&gone); // race(gone) optional

    pthread_spin_init(&spins, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&spins); // other(spins)
#ifdef FIXED
    pthread_spin_unlock(&spins);
#endif
    pthread_spin_destroy(&spins); // race(spins)

    pthread_barrier_init(&barrier, NULL, 1);
    pthread_barrier_destroy(&barrier); // other(barrier)
#ifdef FIXED
    pthread_barrier_init(&barrier, NULL, 1);
#endif
    pthread_barrier_wait(&barrier); // race(barrier)

    pthread_cond_destroy(&condition); // other(condition)
#ifdef FIXED
    pthread_cond_init(&condition, NULL);
#endif
    pthread_cond_signal(&condition); // race(condition)

#ifdef FIXED
    sem_init(&fresh, 0, 0);
#endif
    sem_post(&fresh); // race(fresh)
    sem_init(&old, 0, 0);
    sem_post(&old);
    sem_destroy(&old); // other(old)
#ifdef FIXED
    sem_init(&old, 0, 1);
#endif
    sem_wait(&old); // race(old)
    return 0;
}

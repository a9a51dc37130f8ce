#include "corpus.h"
#include <semaphore.h>
#include <stdatomic.h>
// A semaphore that is destroyed while a thread waits for it. A condition may be destroyed as soon as its waiters were
// woken.
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static int ready, waits;
static atomic_int posted;
static void *on_condition(void *arg) {
    pthread_mutex_lock(&m);
    waits = 1;
    while (!ready) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    return arg;
}
static void *on_semaphore(void *arg) {
    sem_wait(&s); // race(semaphore)
    return arg;
}
static int sleepers(void) { return ((volatile int *)&s)[1]; }
int main(void) {
    pthread_t t = start(on_condition, NULL);
    for (int began = 0; !began; sched_yield()) {
        pthread_mutex_lock(&m);
        began = waits;
        pthread_mutex_unlock(&m);
    }
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    pthread_cond_destroy(&c);
    pthread_join(t, NULL);

    sem_init(&s, 0, 0);
    pthread_t u = start(on_semaphore, NULL);
    while (sleepers() == 0) sched_yield();
#ifdef FIXED
    sem_post(&s);
    pthread_join(u, NULL);
    sem_destroy(&s);
#else
    sem_destroy(&s); // race(semaphore)
    (void)u;
#endif
    return 0;
}

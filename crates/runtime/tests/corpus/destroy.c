#include "corpus.h"
#include <semaphore.h>
// Using a synchronization object and destroying it must be ordered. Whoever is last in order may destroy it.
struct shared {
    pthread_mutex_t m;
    pthread_cond_t c;
    pthread_rwlock_t rw;
    sem_t s;
    int done;
};
static void *works(void *arg) {
    struct shared *s = arg;
    pthread_rwlock_rdlock(&s->rw);
    pthread_rwlock_unlock(&s->rw); // race(rwlock)
    pthread_mutex_lock(&s->m);
    s->done = 1;
#ifdef FIXED
    pthread_cond_signal(&s->c);
    pthread_mutex_unlock(&s->m);
    sem_post(&s->s);
#else
    pthread_mutex_unlock(&s->m);
    pthread_cond_signal(&s->c); // race(condition)
    sem_post(&s->s); // race(semaphore)
#endif
    return NULL;
}
int main(void) {
    static struct shared s = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
    sem_init(&s.s, 0, 0);
    pthread_t t = start(works, &s);
#ifdef FIXED
    pthread_mutex_lock(&s.m);
    while (!s.done) pthread_cond_wait(&s.c, &s.m);
    pthread_mutex_unlock(&s.m);
    sem_wait(&s.s);
#else
    usleep(50000);
#endif
    sem_destroy(&s.s); // race(semaphore)
    pthread_cond_destroy(&s.c); // race(condition)
    pthread_rwlock_destroy(&s.rw); // race(rwlock)
#ifdef FIXED
    pthread_mutex_destroy(&s.m);
#endif
    pthread_join(t, NULL);
    return 0;
}

#include "corpus.h"
int x, sum;
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static void *reader(void *arg) {
    pthread_rwlock_rdlock(&l);
    __atomic_fetch_add(&sum, x, __ATOMIC_RELAXED); // race(x)
    pthread_rwlock_unlock(&l);
    return arg;
}
static void *writer(void *arg) {
#ifdef FIXED
    while (pthread_rwlock_trywrlock(&l) != 0) sched_yield();
#endif
    x = 1; // race(x)
#ifdef FIXED
    pthread_rwlock_unlock(&l);
#endif
    return arg;
}
int main(void) {
    pthread_t w = start(writer, NULL);
    both(reader, reader);
    pthread_join(w, NULL);
    return 0;
}

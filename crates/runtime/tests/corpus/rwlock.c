#include "corpus.h"
int x;
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static void *f(void *arg) {
#ifdef FIXED
    pthread_rwlock_wrlock(&l);
#else
    pthread_rwlock_rdlock(&l);
#endif
    x++; // race(x)
    pthread_rwlock_unlock(&l);
    return arg;
}
int main(void) { both(f, f); pthread_rwlock_destroy(&l); return 0; }

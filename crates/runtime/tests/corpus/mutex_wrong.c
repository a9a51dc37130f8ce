#include "corpus.h"
int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *arg) {
    pthread_mutex_lock(&m);
    x++; // race(x)
    pthread_mutex_unlock(&m);
    return arg;
}
static void *g(void *arg) {
#ifdef FIXED
    pthread_mutex_t *lock = &m;
#else
    pthread_mutex_t *lock = &n;
#endif
    pthread_mutex_lock(lock);
    x++; // race(x)
    pthread_mutex_unlock(lock);
    return arg;
}
int main(void) { both(f, g); return 0; }

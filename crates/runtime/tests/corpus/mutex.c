#include "corpus.h"
int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    x++; // race(x)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) { both(f, f); pthread_mutex_destroy(&m); return x != 2; }

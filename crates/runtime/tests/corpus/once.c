#include "corpus.h"
int *config, sum;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make(void) {
    int *c = malloc(sizeof *c);
    *c = 7;
    config = c; // race(config)
}
static void *f(void *arg) {
#ifdef FIXED
    pthread_once(&once, make);
    __atomic_fetch_add(&sum, *config, __ATOMIC_RELAXED);
#else
    (void)once;
    make();
#endif
    return arg;
}
int main(void) { both(f, f); return 0; }

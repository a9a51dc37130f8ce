#include "corpus.h"
int x;
static void *f(void *arg) {
    __atomic_fetch_add(&x, 1, __ATOMIC_SEQ_CST); // race(x)
    return arg;
}
static void *g(void *arg) {
#ifdef FIXED
    __atomic_store_n(&x, 5, __ATOMIC_RELAXED);
#else
    x = 5; // race(x)
#endif
    return arg;
}
int main(void) { both(f, g); return 0; }

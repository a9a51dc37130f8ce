#include "corpus.h"
int a, b, seen[2];
static pthread_barrier_t bar;
static void cross(void) {
#ifdef FIXED
    pthread_barrier_wait(&bar);
#endif
}
static void *f(void *arg) {
    a = 1; // race(a)
    cross();
    seen[0] = b; // race(b)
    return arg;
}
static void *g(void *arg) {
    b = 1; // race(b)
    cross();
    seen[1] = a; // race(a)
    return arg;
}
int main(void) {
    pthread_barrier_init(&bar, NULL, 2);
    both(f, g);
    pthread_barrier_destroy(&bar);
    return 0;
}

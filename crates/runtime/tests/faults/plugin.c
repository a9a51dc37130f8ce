// An instrumented library that is loaded later.
#include <pthread.h>
int shared;
static void *f(void *arg) { shared++; return arg; }
void race(void) {
    pthread_t t;
    pthread_create(&t, 0, f, 0);
    shared++;
    pthread_join(t, 0);
}

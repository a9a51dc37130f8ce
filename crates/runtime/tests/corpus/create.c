#include "corpus.h"
int x;
static void *f(void *arg) {
    x++; // race(x)
    return arg;
}
int main(void) {
#ifdef FIXED
    x = 1;
#endif
    pthread_t t = start(f, NULL);
#ifndef FIXED
    x = 1; // race(x)
#endif
    pthread_join(t, NULL);
    return 0;
}

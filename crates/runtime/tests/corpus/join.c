#include "corpus.h"
int x;
static void *f(void *arg) {
    x = 1; // race(x)
    return arg;
}
int main(void) {
    pthread_t t = start(f, NULL);
#ifdef FIXED
    pthread_join(t, NULL);
    return x != 1;
#else
    int seen = x; // race(x)
    pthread_join(t, NULL);
    return seen > 1;
#endif
}

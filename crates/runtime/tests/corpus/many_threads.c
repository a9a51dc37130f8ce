#include "corpus.h"
// More threads than there are slots, a few at a time; and some hundred at once.
int x, done;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *arg) {
    pthread_mutex_lock(&m);
    done++;
    pthread_mutex_unlock(&m);
    return arg;
}
static void *bad(void *arg) {
    x++; // race(x)
    return arg;
}
int main(void) {
    enum { ROUNDS = 1500, AT_ONCE = 300 };
    static pthread_t t[AT_ONCE];
    for (int i = 0; i < ROUNDS; i++) both(f, f);
    for (int i = 0; i < AT_ONCE; i++) t[i] = start(f, NULL);
    for (int i = 0; i < AT_ONCE; i++) pthread_join(t[i], NULL);
#ifdef FIXED
    both(f, f);
    (void)bad;
    return done != 2 * ROUNDS + AT_ONCE + 2;
#else
    both(bad, bad);
    return done != 2 * ROUNDS + AT_ONCE;
#endif
}

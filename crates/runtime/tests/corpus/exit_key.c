#include "corpus.h"
// Destructors of thread-specific data belong to the thread.
int x;
static pthread_key_t key;
static void destroy(void *value) {
    x = (int)(intptr_t)value; // race(x)
}
static void *f(void *arg) {
    pthread_setspecific(key, (void *)5);
    pthread_exit(arg);
}
int main(void) {
    pthread_key_create(&key, destroy);
    pthread_t t = start(f, NULL);
#ifdef FIXED
    pthread_join(t, NULL);
    return x != 5;
#else
    int seen = x; // race(x)
    pthread_join(t, NULL);
    return seen > 5;
#endif
}

#include "corpus.h"
int *shared;
static void *user(void *arg) {
    shared[512] = 1; // race(block)
    return arg;
}
int main(void) {
    shared = malloc(4096);
    pthread_t t = start(user, NULL);
#ifdef FIXED
    pthread_join(t, NULL);
    free(shared);
#else
    free(shared); // race(block)
    pthread_join(t, NULL);
#endif
    return 0;
}

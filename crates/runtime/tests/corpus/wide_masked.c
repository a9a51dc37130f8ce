// options: -O2 -mavx2
// own hooks only: the compilers' passes leave out accesses of which a mask switches lanes off.
#include "corpus.h"
// A loop with a condition becomes loads and stores of vectors, of which only the lanes where the condition holds access memory.
enum { LANES = 64 };
int chosen[LANES], to[LANES + 8], from[LANES];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *in_vectors(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    for (int i = 0; i < LANES; i++)
        if (chosen[i]) to[i] = from[i]; // race(chosen)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
static void *in_parts(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    to[21] = 5; // race(chosen)
    // The other thread does not access these, although they are lanes of the same vectors.
    to[20] = 5;
    to[22] = 5;
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) {
    chosen[3] = chosen[21] = chosen[63] = 1;
    both(in_vectors, in_parts);
    return 0;
}

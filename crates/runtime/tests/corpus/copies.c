#include "corpus.h"
size_t size = 100;
char from[100], to[100], other[100];
static void *f(void *arg) {
    memcpy(to, from, size); // race(to)
    return arg;
}
static void *g(void *arg) {
#ifdef FIXED
    memset(other, 1, sizeof other);
#else
    memset(to, 1, size); // race(to)
#endif
    return arg;
}
int main(void) { both(f, g); return to[3] + other[4] > 200; }

#include "corpus.h"
#ifdef FIXED
struct { unsigned a : 4; unsigned : 0; unsigned b : 4; } s;
#else
struct { unsigned a : 4; unsigned b : 4; } s;
#endif
static void *f(void *arg) {
    s.a = 1; // race(field)
    return arg;
}
static void *g(void *arg) {
    s.b = 2; // race(field)
    return arg;
}
int main(void) { both(f, g); return s.a + s.b > 9; }

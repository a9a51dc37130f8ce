#include "corpus.h"
// A value that crosses two words.
struct __attribute__((packed)) { char pad[5]; uint64_t value; char end; } s __attribute__((aligned(8)));
static void *f(void *arg) {
    s.value = 1; // race(value)
    return arg;
}
static void *g(void *arg) {
#ifdef FIXED
    s.end = 1;
    s.pad[4] = 1;
#else
    ((char *)&s)[12] = 1; // race(value)
#endif
    return arg;
}
int main(void) { both(f, g); return 0; }

#include "corpus.h"
// Neighbouring bytes are different variables; the same byte is not.
unsigned char s[8];
static void *f(void *arg) {
    for (int i = 0; i < 8; i += 2) s[i]++; // race(byte)
    return arg;
}
static void *g(void *arg) {
#ifdef FIXED
    for (int i = 1; i < 8; i += 2) s[i]++;
#else
    for (int i = 1; i < 8; i += 2) s[i - 1]++; // race(byte)
#endif
    return arg;
}
int main(void) { both(f, g); return 0; }

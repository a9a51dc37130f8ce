#include "corpus.h"
char text[64] = "one", copy[64];
size_t n;
static void *f(void *arg) {
    strcpy(copy, text); // race(text)
    return arg;
}
static void *g(void *arg) {
#ifdef FIXED
    n = strlen(text);
#else
    text[1] = 'x'; // race(text)
#endif
    return arg;
}
int main(void) { both(f, g); return 0; }

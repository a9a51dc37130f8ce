#include "corpus.h"
// A stream has a lock, which a thread may take several times.
volatile int count;
static void *works(void *arg) {
    for (int i = 0; i < 100; i++) {
#ifdef FIXED
        flockfile(stdout);
        while (ftrylockfile(stdout) != 0) {}
#endif
        count++; // race(count)
#ifdef FIXED
        funlockfile(stdout);
        count++;
        funlockfile(stdout);
#endif
    }
    return arg;
}
int main(void) {
    both(works, works);
    return 0;
}

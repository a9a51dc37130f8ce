#include "corpus.h"
#include <setjmp.h>
#include <signal.h>
// A handler that is left by a jump is over: what the program does then is not done in the handler.
static sigjmp_buf out;
static void *volatile sink;
static void jumps(int signal) {
    (void)signal;
#ifndef FIXED
    sink = malloc(8); // race(malloc)
#endif
    siglongjmp(out, 1);
}
int main(void) {
    signal(SIGALRM, jumps); // race(malloc)
    if (sigsetjmp(out, 1) == 0)
        for (ualarm(1000, 0);;);
    sink = malloc(8);
    free(sink);
    return 0;
}

#include "corpus.h"
#include <setjmp.h>
int x;
static jmp_buf buffer;
__attribute__((noinline)) static void deep(int n) {
    if (n == 0) longjmp(buffer, 1);
    deep(n - 1);
    x += n;
}
static void *f(void *arg) {
    x++; // race(x)
    return arg;
}
int main(void) {
    for (volatile int i = 0; i < 100; i++)
        if (setjmp(buffer) == 0) deep(30);
    pthread_t t = start(f, NULL);
#ifndef FIXED
    x++; // race(x)
#endif
    pthread_join(t, NULL);
    return 0;
}

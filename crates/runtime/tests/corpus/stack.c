#include "corpus.h"
static void *f(void *arg) {
    *(int *)arg += 1; // race(local)
    return NULL;
}
__attribute__((noinline)) static int call(int n) {
    volatile int local[16];
    for (int i = 0; i < 16; i++) local[i] = n + i;
    return local[n & 15];
}
int main(void) {
    int sum = 0;
    // Stacks of ended threads are used again.
    for (int i = 0; i < 10; i++) {
        int local = 0;
        pthread_t t = start(f, &local);
#ifndef FIXED
        local++; // race(local)
#endif
        pthread_join(t, NULL);
        sum += local + call(i);
    }
    return sum < 0;
}

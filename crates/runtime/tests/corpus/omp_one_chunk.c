// Two iterations that use one variable and happen to run in one thread, because the loop is divided as it is.
#include "omp_corpus.h"
int a[64];
int main(void) {
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < 64; i++) {
        a[i] = i; // race(a) unseen
#ifndef FIXED
        if (i == 3) a[5] = 1; // race(a) unseen
#endif
    }
    printf("%d\n", a[5]);
    return 0;
}

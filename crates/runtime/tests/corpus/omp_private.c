// A temporary that should be private.
#include "omp_corpus.h"
int a[100];
int main(void) {
    int t = 0;
#ifdef FIXED
#pragma omp parallel for private(t) num_threads(2)
#else
#pragma omp parallel for num_threads(2)
#endif
    for (int i = 0; i < 100; i++) {
        t = i * 2; // race(t)
        a[i] = t; // race(t)
    }
    printf("%d %d\n", a[50], t);
    return 0;
}

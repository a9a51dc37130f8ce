// Iterations of a simd loop may run in any order, and here in one thread: the race is not seen.
#include "omp_corpus.h"
int a[65], b[65];
int main(void) {
#pragma omp simd
    for (int i = 0; i < 64; i++) {
#ifdef FIXED
        b[i] = a[i + 1] + 1;
#else
        a[i + 1] = a[i] + 1; // race(a) unseen
#endif
    }
    printf("%d %d\n", a[10], b[10]);
    return 0;
}

// A loop in several threads and vectors, with a dependence between iterations.
#include "omp_corpus.h"
int a[65], b[65];
int main(void) {
#pragma omp parallel for simd num_threads(2) simdlen(4)
    for (int i = 0; i < 64; i++) {
#ifdef FIXED
        b[i] = a[i + 1] + 1;
#else
        a[i] = a[i + 1] + 1; // race(a)
#endif
    }
    printf("%d %d\n", a[10], b[10]);
    return 0;
}

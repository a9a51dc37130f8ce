// Combined constructs with tasks.
#include "omp_corpus.h"
int a[8];
int main(void) {
    int sum = 0;
#ifdef FIXED
#pragma omp parallel master taskloop grainsize(1) num_threads(2) reduction(+ : sum)
#else
#pragma omp parallel master taskloop grainsize(1) num_threads(2) shared(sum)
#endif
    for (int i = 0; i < 8; i++) {
        a[i] = i;
        if (i < 2) meet(2);
        sum += a[i]; // race(sum)
    }
    printf("%d\n", sum);
    return 0;
}

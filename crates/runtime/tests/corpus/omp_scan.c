// Sums of all elements so far: by scan, or by a variable that all iterations use.
#include "omp_corpus.h"
int a[32], b[32];
int main(void) {
    int sum = 0;
    for (int i = 0; i < 32; i++) a[i] = i;
#ifdef FIXED
#pragma omp parallel for reduction(inscan, + : sum) num_threads(2)
    for (int i = 0; i < 32; i++) {
        sum += a[i];
#pragma omp scan inclusive(sum)
        b[i] = sum;
    }
#else
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 32; i++) {
        sched_yield(); // The compiler keeps nothing in a register across it.
        sum += a[i]; // race(sum)
        b[i] = sum; // race(sum)
    }
#endif
    printf("%d %d\n", b[31], sum);
    return 0;
}

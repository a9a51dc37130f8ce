// A loop whose iterations may run in any order.
#include "omp_corpus.h"
int a[64], sum;
int main(void) {
#ifdef FIXED
#pragma omp parallel loop reduction(+ : sum) num_threads(2)
#else
#pragma omp parallel loop num_threads(2)
#endif
    for (int i = 0; i < 64; i++) { // race(sum) optional: the sum is read before
        a[i] = i;
        sum += a[i]; // race(sum)
    } // race(sum) optional: and written after the loop
    printf("%d\n", sum);
    return 0;
}

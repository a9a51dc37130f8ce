// More threads: the library combines what they have pair by pair.
#include "omp_corpus.h"
int main(void) {
    int a[16] = {0}, sum = 0;
#ifdef FIXED
#pragma omp parallel for num_threads(7) reduction(+ : a, sum)
#else
#pragma omp parallel for num_threads(7) reduction(+ : a) shared(sum) // race(sum) optional
#endif
    for (int i = 0; i < 112; i++) { // race(sum) optional: the sum is read before
        a[i % 16] += i;
        sum += i; // race(sum)
    } // race(sum) optional: and written after the loop
    printf("%d %d\n", a[3], sum);
    return 0;
}

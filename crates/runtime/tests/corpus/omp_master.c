// master has no barrier at its end, and neither has single with nowait.
#include "omp_corpus.h"
int ready;
int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
#pragma omp master
        ready = 1; // race(ready)
#ifdef FIXED
#pragma omp barrier
#endif
        sum += ready; // race(ready)
    }
    printf("%d\n", sum);
    return 0;
}

// masked has no barrier at its end.
#include "omp_corpus.h"
int ready, other;
int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
#pragma omp masked
        ready = 1; // race(ready)
#pragma omp masked filter(1)
        other = 1; // race(other)
#ifdef FIXED
#pragma omp barrier
#endif
        sum += ready; // race(ready)
        sum += other; // race(other)
    }
    printf("%d\n", sum);
    return 0;
}

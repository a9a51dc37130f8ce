// Tasks of a taskloop are unordered; its end waits for them.
#include "omp_corpus.h"
int main(void) {
    int sum = 0, after = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#ifdef FIXED
#pragma omp taskloop grainsize(1) reduction(+ : sum) shared(after)
#else
#pragma omp taskloop grainsize(1) shared(sum, after)
#endif
        for (int i = 0; i < 2; i++) {
            meet(2);
            sum += i; // race(sum)
        }
        after = sum;
    }
    printf("%d\n", after);
    return 0;
}

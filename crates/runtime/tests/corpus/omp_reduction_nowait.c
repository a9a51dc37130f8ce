// The result of a reduction is there after the barrier.
#include "omp_corpus.h"
int main(void) {
    int sum = 0, seen = 0;
#pragma omp parallel num_threads(2) shared(sum) reduction(+ : seen)
    {
#ifdef FIXED
#pragma omp for reduction(+ : sum)
#else
#pragma omp for reduction(+ : sum) nowait // race(sum)
#endif
        for (int i = 0; i < 8; i++) sum += i; // race(sum) optional
        meet(2);
        seen += sum; // race(sum)
    }
    printf("%d %d\n", sum, seen);
    return 0;
}

// Tasks contribute to a reduction of their group, or forget to.
#include "omp_corpus.h"
int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
    {
        for (int i = 0; i < 4; i++) {
#ifdef FIXED
#pragma omp task in_reduction(+ : sum)
#else
#pragma omp task shared(sum)
#endif
            {
                if (i < 2) meet(2);
                sum += i; // race(sum)
            }
        }
    }
    printf("%d\n", sum);
    return 0;
}

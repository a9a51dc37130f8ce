// Tasks contribute to a reduction of a loop that threads share, and of sections.
#include "omp_corpus.h"
int main(void) {
    int sum = 0, parts = 0, count = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp for reduction(task, + : sum) schedule(static, 1)
        for (int i = 0; i < 4; i++) {
#pragma omp task in_reduction(+ : sum) shared(count)
            {
                sum += i;
                if (i < 2) meet(2);
#ifdef FIXED
#pragma omp atomic
#endif
                count++; // race(count)
            }
        }
#pragma omp sections reduction(task, + : parts)
        {
#pragma omp section
#pragma omp task in_reduction(+ : parts)
            parts++;
#pragma omp section
#pragma omp task in_reduction(+ : parts)
            parts++;
        }
#pragma omp single
        sum += parts;
    }
    printf("%d %d\n", sum, count);
    return 0;
}

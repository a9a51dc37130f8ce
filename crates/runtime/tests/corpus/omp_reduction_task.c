// Tasks of all threads contribute to a reduction of the team.
#include "omp_corpus.h"
int main(void) {
    int sum = 0, count = 0;
#pragma omp parallel num_threads(2) reduction(task, + : sum)
    {
        for (int i = 0; i < 4; i++) {
#pragma omp task in_reduction(+ : sum) shared(count)
            {
                sum += i;
                meet(2);
#ifdef FIXED
#pragma omp atomic
#endif
                count++; // race(count)
            }
        }
    }
    printf("%d %d\n", sum, count);
    return 0;
}

// The tasks of a loop contribute to a reduction, or forget to; loops run in either direction, or not at all.
#include "omp_corpus.h"
int main(void) {
    long sum = 0, count = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp taskloop reduction(+ : sum) num_tasks(7) shared(count)
        for (int i = 20; i > 0; i -= 3) {
            sum += i;
            if (i > 14) meet(2);
#ifdef FIXED
#pragma omp atomic
#endif
            count++; // race(count)
        }
#pragma omp taskloop nogroup
        for (unsigned long long i = 3; i < 3; i++) sum += i;
#pragma omp taskloop reduction(+ : sum)
        for (unsigned long long i = 3; i < 9; i++) sum += i;
    }
    printf("%ld %ld\n", sum, count);
    return 0;
}

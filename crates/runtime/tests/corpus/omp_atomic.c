// An atomic update and a plain read.
#include "omp_corpus.h"
int count, captured;
int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
        int now, old;
#pragma omp atomic update // race(count) optional
        count++; // race(count)
#ifdef FIXED
#pragma omp atomic read
#endif
        now = count; // race(count)
#pragma omp atomic capture seq_cst
        old = captured++;
        sum += now + old;
    }
    printf("%d %d\n", sum, count);
    return 0;
}

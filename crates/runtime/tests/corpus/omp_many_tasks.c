// More than a million tasks, one after the other, while the one that makes them goes on.
#include "omp_corpus.h"
int main(void) {
    int x = 0;
    long sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task shared(x)
        {
            x++; // race(x)
            is_done();
        }
        wait_for(1);
        for (int i = 0; i < 1100000; i++) {
#pragma omp task if (0) shared(sum)
            sum++;
        }
#ifdef FIXED
#pragma omp taskwait
#endif
        x++; // race(x)
    }
    printf("%d %ld\n", x, sum);
    return 0;
}

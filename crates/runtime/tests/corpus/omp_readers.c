// Tasks that only read a variable, as they say, run at the same time.
#include "omp_corpus.h"
int main(void) {
    int x = 0, sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : x) shared(x)
        x = 1;
        for (int i = 0; i < 2; i++) {
#pragma omp task depend(in : x) shared(x, sum)
            {
                meet(2);
#ifdef FIXED
#pragma omp atomic
#endif
                sum += x; // race(sum)
            }
        }
#pragma omp task depend(inout : x) shared(x, sum)
        x = sum;
    }
    printf("%d\n", x);
    return 0;
}

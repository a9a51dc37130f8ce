// Tasks of a mutexinoutset exclude each other; tasks that read do not.
#include "omp_corpus.h"
int main(void) {
    int x = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : x) shared(x)
        x = 1;
        for (int i = 0; i < 4; i++) {
#ifdef FIXED
#pragma omp task depend(mutexinoutset : x) shared(x)
#else
#pragma omp task depend(in : x) shared(x)
#endif
            {
                if (i < 2) meet(2);
                x += i; // race(x)
            }
        }
#pragma omp task depend(inout : x) shared(x)
        x++;
    }
    printf("%d\n", x);
    return 0;
}

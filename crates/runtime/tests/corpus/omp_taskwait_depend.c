// A taskwait with a dependence waits for the tasks that it depends on, and for no others.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(inout : x) shared(x)
        {
            x++; // race(x)
            is_done();
        }
        wait_for(1);
#ifdef FIXED
#pragma omp taskwait depend(in : x)
#else
#pragma omp taskwait depend(in : y)
#endif
        x++; // race(x)
    }
    printf("%d\n", x + y);
    return 0;
}

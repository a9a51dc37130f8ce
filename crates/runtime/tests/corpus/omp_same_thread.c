// Two tasks that nothing orders and that one thread happens to run, one after the other.
#include "omp_corpus.h"
int main(void) {
    int x = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#ifdef FIXED
#pragma omp task depend(inout : x) shared(x)
#else
#pragma omp task shared(x)
#endif
        {
            x++; // race(x) unseen
            is_done();
        }
        wait_for(1);
#ifdef FIXED
#pragma omp task depend(inout : x) shared(x)
#else
#pragma omp task shared(x)
#endif
        {
            x++; // race(x) unseen
            is_done();
        }
        wait_for(2);
    }
    printf("%d\n", x);
    return 0;
}

// A task that is made after a barrier is not ordered before what others do after the same barrier.
#include "omp_corpus.h"
int main(void) {
    int x = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp barrier
#pragma omp masked
        {
#pragma omp task shared(x)
            {
                meet(2);
                x++; // race(x)
            }
#ifdef FIXED
#pragma omp taskwait
#endif
        }
#ifdef FIXED
#pragma omp barrier
#endif
#pragma omp masked filter(1)
        {
            meet(2);
            x++; // race(x)
        }
    }
    printf("%d\n", x);
    return 0;
}

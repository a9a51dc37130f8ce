// Tasks end at the barrier at the latest; what a thread does before it is not ordered with them.
#include "omp_corpus.h"
int main(void) {
    int x = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp masked
        {
#pragma omp task shared(x)
            {
                meet(2);
                x++; // race(x)
            }
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

// Dependences that were put into an object.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0;
    omp_depend_t object;
#ifdef FIXED
#pragma omp depobj(object) depend(inout : x)
#else
#pragma omp depobj(object) depend(inout : y)
#endif
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : x) shared(x)
        {
            meet(2);
            x++; // race(x)
        }
#pragma omp task depend(depobj : object) shared(x)
        {
            meet(2);
            x++; // race(x)
        }
    }
#pragma omp depobj(object) destroy
    printf("%d\n", x + y);
    return 0;
}

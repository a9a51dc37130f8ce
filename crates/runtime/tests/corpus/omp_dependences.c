// Dependences order only tasks that the same task has made.
#include "omp_corpus.h"
int main(void) {
    int a = 0;
#pragma omp parallel num_threads(2)
    {
#ifdef FIXED
#pragma omp single
        for (int i = 0; i < 2; i++)
#endif
#pragma omp task depend(inout : a) shared(a)
        {
            meet(2);
            a++; // race(a)
        }
    }
    printf("%d\n", a);
    return 0;
}

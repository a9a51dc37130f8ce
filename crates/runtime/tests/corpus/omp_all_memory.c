// A task that depends on all memory comes after all earlier tasks with dependences and before all later ones.
// clang only: gcc knows this dependence from version 13 on.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0, sum = 0, rest = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : x) shared(x, sum)
        {
            meet(2);
            sum++; // race(sum)
        }
#ifdef FIXED
#pragma omp task depend(inout : omp_all_memory) shared(sum, rest)
#else
#pragma omp task depend(inout : y) shared(sum, rest)
#endif
        {
            meet(2);
            sum++; // race(sum)
            rest++;
        }
#pragma omp task depend(in : y) shared(rest)
        rest++;
    }
    printf("%d\n", x + y + sum + rest);
    return 0;
}

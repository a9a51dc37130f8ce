// Members of an inoutset run at the same time; what comes before and after the set does not.
// clang only: gcc knows this dependence from version 13 on.
#include "omp_corpus.h"
int main(void) {
    int set = 0, parts[2] = {0}, both = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : set) shared(both)
        both = 1;
        for (int i = 0; i < 2; i++) {
#pragma omp task depend(inoutset : set) shared(parts, both)
            {
                parts[i] = both; // race(both) optional
                meet(2);
#ifndef FIXED
                both++; // race(both)
#endif
            }
        }
#pragma omp task depend(in : set) shared(parts, both)
        both = parts[0] + parts[1];
    }
    printf("%d\n", both);
    return 0;
}

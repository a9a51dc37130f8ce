// Sections are unordered; their end is a barrier unless it says nowait.
#include "omp_corpus.h"
int x, y;
static __attribute__((noinline)) void first(void) {
    meet(2);
    x = 1; // race(x)
}
static __attribute__((noinline)) void second(void) {
    meet(2);
    y = 1; // race(y)
}
int main(void) {
    int seen = 0;
#pragma omp parallel num_threads(2) reduction(+ : seen)
    {
#ifdef FIXED
#pragma omp sections
#else
#pragma omp sections nowait
#endif
        {
#pragma omp section
            first();
#pragma omp section
            second();
        }
        meet(4);
        seen += x; // race(x)
        seen += y; // race(y)
    }
    printf("%d\n", seen);
    return 0;
}

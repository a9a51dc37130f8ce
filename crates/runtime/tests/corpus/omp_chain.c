// A chain of tasks: one that reads a variable and writes another passes the order on.
#include "omp_corpus.h"
int main(void) {
    int a = 0, b = 0, c = 0, out = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp task depend(out : a) shared(a, out)
        {
            a = 1;
            meet(2);
            out++; // race(out)
        }
#ifdef FIXED
#pragma omp task depend(in : a) depend(out : b) shared(a, b)
#else
#pragma omp task depend(out : b) shared(b)
#endif
        b = 2;
#pragma omp task depend(in : b) depend(inout : c) shared(b, c, out)
        {
            c = b;
            meet(2);
            out++; // race(out)
        }
    }
    printf("%d\n", out + c + a);
    return 0;
}

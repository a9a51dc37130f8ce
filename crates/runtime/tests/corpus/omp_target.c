// Code for a device, which the host runs when there is none. It comes after the tasks that it depends on, and what
// depends on it comes after it.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : x) shared(x)
        {
            x = 1; // race(x)
            is_done();
            meet(2);
        }
        wait_for(1);
#ifdef FIXED
#pragma omp target nowait depend(in : x) depend(out : y) map(tofrom : x, y)
#else
#pragma omp target nowait depend(out : y) map(tofrom : x, y)
#endif
        {
            meet(2);
            y = x; // race(x)
        }
#pragma omp task depend(in : y) shared(y)
        y++;
    }
    printf("%d\n", x + y);
    return 0;
}

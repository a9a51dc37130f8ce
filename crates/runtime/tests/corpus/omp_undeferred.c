// The thread that makes an undeferred task waits for the tasks that this one depends on.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(inout : x) shared(x)
        {
            x++; // race(x)
            is_done();
        }
        wait_for(1);
#ifdef FIXED
#pragma omp task depend(in : x) if (0) shared(y)
#else
#pragma omp task depend(in : y) if (0) shared(y)
#endif
        y++;
        x++; // race(x)
    }
    printf("%d\n", x + y);
    return 0;
}

// A taskwait waits for the tasks that this one has made, a taskgroup for those that they have made as well.
#include "omp_corpus.h"
int main(void) {
    int x = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#ifdef FIXED
#pragma omp taskgroup
#endif
        {
#pragma omp task shared(x)
            {
#pragma omp task shared(x)
                {
                    x++; // race(x)
                    is_done();
                }
            }
        }
        wait_for(1);
#ifndef FIXED
#pragma omp taskwait
#endif
        x++; // race(x)
    }
    printf("%d\n", x);
    return 0;
}

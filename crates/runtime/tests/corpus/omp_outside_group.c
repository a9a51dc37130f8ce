// The end of a taskgroup waits for the tasks that were made in it, not for earlier ones.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#ifdef FIXED
#pragma omp taskgroup
        {
#endif
#pragma omp task shared(x)
            {
                x++; // race(x)
                is_done();
#ifndef FIXED
                // The other task, for which the group waits, runs in the other thread.
                wait_for(2);
#endif
            }
            wait_for(1);
#ifndef FIXED
#pragma omp taskgroup
        {
#endif
#pragma omp task shared(y)
            y++;
        }
        x++; // race(x)
        is_done();
    }
    printf("%d\n", x + y);
    return 0;
}

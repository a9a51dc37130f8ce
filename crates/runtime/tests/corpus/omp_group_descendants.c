// Groups inside groups: the inner one's tasks end with it, the outer one's later.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
#pragma omp taskgroup
    {
#pragma omp task shared(x)
        {
            x++; // race(x)
            is_done();
            meet(2);
        }
        wait_for(1);
#pragma omp taskgroup
        {
#pragma omp task shared(y)
            {
                y++;
                is_done();
                meet(2);
            }
            wait_for(2);
        }
        y++;
#ifdef FIXED
#pragma omp taskwait
#endif
        x++; // race(x)
    }
    printf("%d\n", x + y);
    return 0;
}

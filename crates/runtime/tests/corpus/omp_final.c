// Tasks inside a final task run at once, in its thread.
#include "omp_corpus.h"
int main(void) {
    int x = 0, inside = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task final(1) mergeable priority(1) shared(x, inside)
        {
#pragma omp task shared(inside)
            inside++;
#pragma omp task mergeable shared(inside)
            inside++;
            inside++;
            x++; // race(x)
            is_done();
        }
        wait_for(1);
#ifdef FIXED
#pragma omp taskwait
#endif
        x++; // race(x)
    }
    printf("%d\n", x + inside);
    return 0;
}

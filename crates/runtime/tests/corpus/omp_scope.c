// All threads run a scope, and wait for each other at its end.
// gcc only: clang 19 cannot compile it.
#include "omp_corpus.h"
int main(void) {
    int sum = 0, last = 0;
#pragma omp parallel num_threads(2)
    {
#ifdef FIXED
#pragma omp scope reduction(+ : sum)
#else
#pragma omp scope reduction(+ : sum) nowait // race(sum) optional
#endif
        {
            sum += omp_get_thread_num(); // race(sum) optional
        } // race(sum) optional
        meet(2);
        if (omp_get_thread_num() == 0) last = sum; // race(sum)
    }
    printf("%d\n", last);
    return 0;
}

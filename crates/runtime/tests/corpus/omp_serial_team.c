// A team of one thread: its tasks run at once, and nothing of the race is seen.
#include "omp_corpus.h"
int main(void) {
    int x = 0;
#pragma omp parallel num_threads(1)
    {
#pragma omp task shared(x)
        x++; // race(x) unseen
#ifdef FIXED
#pragma omp taskwait
#endif
        x++; // race(x) unseen
    }
    printf("%d\n", x);
    return 0;
}

// Every thread has its own copy of what is threadprivate.
#include "omp_corpus.h"
static int counter = 1;
#ifdef FIXED
#pragma omp threadprivate(counter)
#endif
int main(void) {
    int sum = 0;
#ifdef FIXED
#pragma omp parallel num_threads(2) reduction(+ : sum) copyin(counter)
#else
#pragma omp parallel num_threads(2) reduction(+ : sum)
#endif
    {
        counter += omp_get_thread_num(); // race(counter)
        sum += counter; // race(counter)
    }
    printf("%d\n", sum);
    return 0;
}

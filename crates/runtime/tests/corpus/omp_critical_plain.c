// Critical sections without a name exclude each other, and none that has one.
#include "omp_corpus.h"
int count;
int main(void) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp critical
            count++; // race(count)
        }
        meet(2);
        if (omp_get_thread_num() == 1) {
#ifdef FIXED
#pragma omp critical
#else
#pragma omp critical(other)
#endif
            count++; // race(count)
        }
    }
    printf("%d\n", count);
    return 0;
}

// Teams inside teams: a barrier of one is none of the other.
#include "omp_corpus.h"
int x[2], y;
int main(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2)
        {
            if (omp_get_thread_num() == 0) x[outer] = 1;
#pragma omp barrier
            if (omp_get_thread_num() == 1) x[outer]++;
#pragma omp barrier
            if (omp_get_thread_num() == 0) {
                meet(2);
#ifdef FIXED
#pragma omp critical
#endif
                y += x[outer]; // race(y)
            }
        }
    }
    printf("%d\n", y);
    return 0;
}

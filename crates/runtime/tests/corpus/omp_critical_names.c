// Critical sections of different names do not exclude each other.
#include "omp_corpus.h"
int count, hinted;
int main(void) {
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 10; i++) {
        if (omp_get_thread_num() == 0) {
#pragma omp critical(one)
            count++; // race(count)
        } else {
#ifdef FIXED
#pragma omp critical(one)
#else
#pragma omp critical(two)
#endif
            count++; // race(count)
        }
#pragma omp critical(hinted) hint(omp_sync_hint_contended)
        hinted++;
    }
    printf("%d %d\n", count, hinted);
    return 0;
}

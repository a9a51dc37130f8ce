// Locks, with and without waiting; a lock that was only tried is not held unless the attempt succeeded.
#include "omp_corpus.h"
int locked, tried;
int main(void) {
    omp_lock_t lock;
#ifdef __clang__
    omp_init_lock_with_hint(&lock, omp_sync_hint_contended);
#else // gcc 12 declares it and does not have it.
    omp_init_lock(&lock);
#endif
#pragma omp parallel num_threads(2)
    {
        for (int i = 0; i < 20; i++) {
            omp_set_lock(&lock);
            locked++;
            omp_unset_lock(&lock);
        }
#ifdef FIXED
        while (!omp_test_lock(&lock)) sched_yield();
        tried++;
        omp_unset_lock(&lock);
#else
#pragma omp barrier
        if (omp_get_thread_num() == 0) omp_set_lock(&lock);
        meet(2);
        if (omp_get_thread_num() == 0) {
            tried = 1; // race(tried)
        } else if (!omp_test_lock(&lock)) {
            tried++; // race(tried)
        }
        meet(4);
        if (omp_get_thread_num() == 0) omp_unset_lock(&lock);
#endif
    }
    omp_destroy_lock(&lock);
    printf("%d %d\n", locked, tried);
    return 0;
}

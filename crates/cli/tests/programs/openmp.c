// A team that counts in a critical section, and before it a thread that loses an update of `lost`.
#include <assert.h>
#include <omp.h>
#include <pthread.h>
int count, lost;
static void *update(void *unused) {
    lost++;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, update, 0);
#ifndef FIXED
    lost++;
#endif
    pthread_join(thread, 0);
    int wanted = omp_get_max_threads();
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        count++;
    }
    assert(wanted >= 1);
    return 0;
}

// Critical sections, locks, single, ordered, barriers.
#include <omp.h>
#include <sched.h>
#include <stdio.h>
int count, locked, first, second, in_order;
int main(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(3)
    for (int i = 0; i < 50; i++) {
        sched_yield(); // The compiler keeps nothing in a register across it.
#ifdef FIXED
#pragma omp critical
#endif
        count++; // race(count)
#ifdef FIXED
        omp_set_lock(&lock);
#endif
        locked++; // race(locked)
#ifdef FIXED
        omp_unset_lock(&lock);
#endif
    }
    omp_destroy_lock(&lock);
#pragma omp parallel num_threads(3)
    {
#ifdef FIXED
#pragma omp single
#else
#pragma omp single nowait
#endif
        first = 1; // race(first)
        if (first && omp_get_thread_num() == 1) second = 1; // race(first)
#ifdef FIXED
#pragma omp barrier
        if (omp_get_thread_num() == 2) second = 2;
#endif
    }
#pragma omp parallel for ordered num_threads(3)
    for (int i = 0; i < 9; i++) {
        sched_yield();
#ifdef FIXED
#pragma omp ordered
#endif
        in_order += i; // race(in_order)
    }
    printf("%d\n", count + locked + second + in_order);
    return 0;
}

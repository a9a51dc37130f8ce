// A nestable lock is free when it was given back as often as it was taken.
#include "omp_corpus.h"
int inner, outer;
int main(void) {
    omp_nest_lock_t lock;
    omp_init_nest_lock(&lock);
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 10; i++) {
        omp_set_nest_lock(&lock);
        omp_set_nest_lock(&lock);
        inner++;
        omp_unset_nest_lock(&lock);
#ifdef FIXED
        outer++;
        omp_unset_nest_lock(&lock);
#else
        omp_unset_nest_lock(&lock);
        outer++; // race(outer)
#endif
    }
    omp_destroy_nest_lock(&lock);
    printf("%d %d\n", inner, outer);
    return 0;
}

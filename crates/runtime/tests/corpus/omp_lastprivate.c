// The value of the last iteration, by lastprivate or by every iteration writing it.
#include "omp_corpus.h"
int main(void) {
    int last = 0, base = 3, greatest = 0;
#ifdef FIXED
#pragma omp parallel for firstprivate(base) lastprivate(last) lastprivate(conditional : greatest) num_threads(2)
#else
#pragma omp parallel for firstprivate(base) num_threads(2)
#endif
    for (int i = 0; i < 10; i++) {
        sched_yield(); // The compiler keeps nothing in a register across it.
        base += i;
        last = i; // race(last)
        if (i % 3 == 0) greatest = i; // race(greatest)
    }
    printf("%d %d %d\n", last, base, greatest);
    return 0;
}

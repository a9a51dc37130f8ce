// An atomic update that no instruction does: it needs a lock of the library's.
// gcc only: clang does not instrument accesses of this width.
#include "omp_corpus.h"
long double sum;
int main(void) {
#pragma omp parallel for num_threads(2) schedule(static, 1)
    for (int i = 0; i < 20; i++) {
        sched_yield(); // The compiler keeps nothing in a register across it.
#ifdef FIXED
#pragma omp atomic
#endif
        sum += i; // race(sum)
    }
    printf("%d\n", (int)sum);
    return 0;
}

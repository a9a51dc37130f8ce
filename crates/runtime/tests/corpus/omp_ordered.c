// Ordered sections come in the order of the iterations; what is outside of them does not.
#include "omp_corpus.h"
int in_order, outside;
int main(void) {
#pragma omp parallel for ordered schedule(static, 1) num_threads(2)
    for (int i = 0; i < 10; i++) {
#ifdef FIXED
#pragma omp atomic
#endif
        outside += i; // race(outside)
#pragma omp ordered
        in_order = in_order * 2 + i;
    }
    printf("%d %d\n", in_order, outside);
    return 0;
}

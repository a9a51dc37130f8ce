// Iterations that wait for others: depend(sink), depend(source).
#include "omp_corpus.h"
int a[20];
int main(void) {
#pragma omp parallel for ordered(1) schedule(static, 1) num_threads(2)
    for (int i = 1; i < 20; i++) {
#ifdef FIXED
#pragma omp ordered depend(sink : i - 1)
#else
#pragma omp ordered depend(sink : i - 2)
#endif
        a[i] = a[i - 1] + 1; // race(a)
#pragma omp ordered depend(source)
    }
    printf("%d\n", a[19]);
    return 0;
}

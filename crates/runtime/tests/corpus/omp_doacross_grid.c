// Iterations of two loops that wait for their neighbours.
#include "omp_corpus.h"
int a[8][8];
int main(void) {
#pragma omp parallel for ordered(2) schedule(static, 1) num_threads(2)
    for (int i = 1; i < 8; i++)
        for (int j = 1; j < 8; j++) {
#ifdef FIXED
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
#else
#pragma omp ordered depend(sink : i, j - 1)
#endif
            a[i][j] = a[i - 1][j] + a[i][j - 1] + 1; // race(a)
#pragma omp ordered depend(source)
        }
    printf("%d\n", a[7][7]);
    return 0;
}

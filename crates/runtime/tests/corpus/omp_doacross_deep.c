// A loop that is ordered by more numbers than there are registers for them.
#include "omp_corpus.h"
int a[10];
int main(void) {
#pragma omp parallel for ordered(8) schedule(static, 1) num_threads(2)
    for (int i = 1; i < 10; i++)
        for (int j = 0; j < 1; j++)
            for (int k = 0; k < 1; k++)
                for (int l = 0; l < 1; l++)
                    for (int m = 0; m < 1; m++)
                        for (int n = 0; n < 1; n++)
                            for (int o = 0; o < 1; o++)
                                for (int p = 0; p < 1; p++) {
#ifdef FIXED
#pragma omp ordered depend(sink : i - 1, j, k, l, m, n, o, p)
#endif
                                    a[i] = a[i - 1] + 1; // race(a)
#pragma omp ordered depend(source)
                                }
    printf("%d\n", a[9]);
    return 0;
}

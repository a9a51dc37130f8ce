// A dependence on each of several elements.
#include "omp_corpus.h"
int a[4];
int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        for (int i = 0; i < 4; i++) {
#pragma omp task depend(out : a[i])
            {
                if (i == 3) meet(2);
                a[i] = i; // race(a)
            }
        }
#ifdef FIXED
#pragma omp task depend(iterator(i = 0 : 4), in : a[i]) shared(sum)
#else
#pragma omp task depend(iterator(i = 0 : 3), in : a[i]) shared(sum)
#endif
        {
            meet(2);
            for (int i = 0; i < 4; i++) sum += a[i]; // race(a)
        }
    }
    printf("%d\n", sum);
    return 0;
}

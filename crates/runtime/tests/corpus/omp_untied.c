// An untied task may go on in another thread; it stays ordered with itself and with nothing else.
#include "omp_corpus.h"
int main(void) {
    int x = 0, own = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task untied shared(x, own)
        {
            for (int i = 0; i < 4; i++) {
                own++;
#pragma omp taskyield
#pragma omp task shared(own)
                own++;
#pragma omp taskwait
            }
            x++; // race(x)
            is_done();
        }
        wait_for(1);
#ifdef FIXED
#pragma omp taskwait
#endif
        x++; // race(x)
    }
    printf("%d\n", x + own);
    return 0;
}

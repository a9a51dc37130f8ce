// Chunks that are handed out while the loop runs.
#include "omp_corpus.h"
int dynamic, guided;
int main(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 16; i++) {
            meet(2);
#ifdef FIXED
#pragma omp atomic
#endif
            dynamic += i; // race(dynamic)
        }
#pragma omp for schedule(nonmonotonic : guided, 1)
        for (int i = 0; i < 16; i++) {
            meet(18);
#ifdef FIXED
#pragma omp atomic
#endif
            guided += i; // race(guided)
        }
    }
    printf("%d %d\n", dynamic, guided);
    return 0;
}

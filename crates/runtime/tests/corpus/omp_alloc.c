// Memory of the library's own allocator goes from thread to thread.
#include "omp_corpus.h"
int sum;
int main(void) {
#pragma omp parallel num_threads(2)
    for (int r = 0; r < 50; r++) {
        int *own = omp_alloc(sizeof(int) * 40, omp_default_mem_alloc);
        for (int i = 0; i < 40; i++) own[i] = r;
#pragma omp task firstprivate(own)
        {
            int mine = 0;
            for (int i = 0; i < 40; i++) mine += own[i];
            omp_free(own, omp_default_mem_alloc);
#ifdef FIXED
#pragma omp atomic
#endif
            sum += mine; // race(sum)
        }
        if (r == 0) {
            meet(2);
#ifndef FIXED
            sum++; // race(sum)
#endif
        }
    }
    printf("%d\n", sum);
    return 0;
}

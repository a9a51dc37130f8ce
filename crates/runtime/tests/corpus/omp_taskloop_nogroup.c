// With nogroup the end of a taskloop waits for nothing.
#include "omp_corpus.h"
int data[4];
int main(void) {
    int last = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#ifdef FIXED
#pragma omp taskloop grainsize(2)
#else
#pragma omp taskloop grainsize(2) nogroup
#endif
        for (int i = 0; i < 4; i++) {
            data[i] = i; // race(data)
            is_done();
        }
        wait_for(4);
        last = data[3]; // race(data)
    }
    printf("%d\n", last);
    return 0;
}

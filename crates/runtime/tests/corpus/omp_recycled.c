// What is private to a task lies in a block that the library uses for other tasks, made by other threads, later.
#include "omp_corpus.h"
long total;
static void make(int i) {
#pragma omp task firstprivate(i)
    {
        int mine[8];
        for (int k = 0; k < 8; k++) mine[k] = i++;
#ifdef FIXED
#pragma omp atomic
#endif
        total += mine[7]; // race(total)
    }
}
int main(void) {
#pragma omp parallel num_threads(4)
    {
        meet(4);
        for (int i = 0; i < 500; i++) make(i);
    }
    printf("%ld\n", total);
    return 0;
}

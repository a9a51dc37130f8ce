// What one thread read is given to all by copyprivate, or through a variable that all share.
#include "omp_corpus.h"
int input = 7, shared;
int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
        int mine;
#ifdef FIXED
#pragma omp single copyprivate(mine)
        mine = input;
        sum += mine;
#else
#pragma omp single nowait
        shared = input; // race(shared)
        mine = shared; // race(shared)
        sum += mine;
#endif
    }
    printf("%d\n", sum);
    return 0;
}

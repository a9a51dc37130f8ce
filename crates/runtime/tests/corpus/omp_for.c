// Built with clang and its OpenMP.
#include <stdio.h>
int data[8], copy[8], total;
int main(void) {
    data[0] = 1;
#pragma omp parallel num_threads(2)
    {
#ifdef FIXED
#pragma omp for
#else
#pragma omp for nowait
#endif
        for (int i = 0; i < 8; i++) data[i] += i; // race(data)
#pragma omp for
        for (int i = 0; i < 8; i++) copy[i] = data[7 - i]; // race(data)
    }
#ifdef FIXED
#pragma omp parallel for reduction(+ : total) num_threads(2)
    for (int i = 0; i < 8; i++) total += data[i];
#else
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 8; i++) total += data[i]; // race(total)
#endif
    printf("%d %d\n", copy[0], total);
    return 0;
}

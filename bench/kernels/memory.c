// Memory-bound: each thread adds its half of two arrays larger than the caches, again and again.
#include "common.h"
enum { N = 1 << 21 };
static double a[N], b[N], c[N];
static int rounds;
static void *work(void *id) {
    int from = (int)(intptr_t)id * (N / THREADS), to = from + N / THREADS;
    for (int r = 0; r < rounds; r++)
        for (int i = from; i < to; i++) c[i] = a[i] + 3.0 * b[i];
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 30);
    for (int i = 0; i < N; i++) { a[i] = i; b[i] = 2 * i; }
    run_threads();
    printf("%g\n", c[N / 3]);
}

// Dense matrix product; both threads read all of b.
#include "common.h"
enum { N = 320 };
static double a[N][N], b[N][N], c[N][N];
static int rounds;
static void *work(void *id) {
    int from = (int)(intptr_t)id * (N / THREADS), to = from + N / THREADS;
    for (int r = 0; r < rounds; r++)
        for (int i = from; i < to; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
                c[i][j] = sum;
            }
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 4);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) { a[i][j] = i + j; b[i][j] = i - j; }
    run_threads();
    printf("%g\n", c[N / 2][N / 3]);
}

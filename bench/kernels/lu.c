// LU decomposition without pivoting; rows are dealt out cyclically, a barrier after each step.
#include "common.h"
enum { N = 384 };
static double a[N][N];
static int rounds;
static pthread_barrier_t barrier;
static void fill(int from, int step) {
    for (int i = from; i < N; i += step)
        for (int j = 0; j < N; j++) a[i][j] = i == j ? 2 * N : (i * j) % 7;
}
static void *work(void *id) {
    int me = (int)(intptr_t)id;
    for (int r = 0; r < rounds; r++) {
        fill(me, THREADS);
        pthread_barrier_wait(&barrier);
        for (int k = 0; k < N - 1; k++) {
            for (int i = k + 1; i < N; i++) {
                if (i % THREADS != me) continue;
                double f = a[i][k] /= a[k][k];
                for (int j = k + 1; j < N; j++) a[i][j] -= f * a[k][j];
            }
            pthread_barrier_wait(&barrier);
        }
    }
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 4);
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_threads();
    printf("%g\n", a[N - 1][N - 1]);
}

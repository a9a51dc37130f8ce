// Red-black successive over-relaxation with a barrier after each half sweep.
#include "common.h"
enum { N = 512 };
static double g[N][N];
static int rounds;
static pthread_barrier_t barrier;
static void *work(void *id) {
    int from = 1 + (int)(intptr_t)id * ((N - 2) / THREADS), to = from + (N - 2) / THREADS;
    for (int r = 0; r < 2 * rounds; r++) {
        for (int i = from; i < to; i++)
            for (int j = 1 + (i + r) % 2; j < N - 1; j += 2)
                g[i][j] += 0.3 * (g[i - 1][j] + g[i + 1][j] + g[i][j - 1] + g[i][j + 1] - 4 * g[i][j]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 80);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < N; i++) g[i][0] = g[0][i] = i;
    run_threads();
    printf("%g\n", g[N / 2][N / 3]);
}

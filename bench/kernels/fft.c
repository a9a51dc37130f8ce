// Iterative radix-2 FFT; the butterflies of a stage are shared out, a barrier between stages.
#include <math.h>
#include "common.h"
enum { LOG = 17, N = 1 << LOG };
static double re[N], im[N], wr[N / 2], wi[N / 2];
static int rounds;
static pthread_barrier_t barrier;
static void *work(void *id) {
    int me = (int)(intptr_t)id, half = N / 2 / THREADS;
    for (int r = 0; r < rounds; r++)
        for (int s = 0; s < LOG; s++) {
            int span = 1 << s;
            for (int n = me * half; n < (me + 1) * half; n++) {
                int k = n & (span - 1), i = ((n >> s) << (s + 1)) | k, j = i + span, w = k << (LOG - 1 - s);
                double xr = re[j] * wr[w] - im[j] * wi[w], xi = re[j] * wi[w] + im[j] * wr[w];
                re[j] = (re[i] - xr) * 0.5; im[j] = (im[i] - xi) * 0.5;
                re[i] = (re[i] + xr) * 0.5; im[i] = (im[i] + xi) * 0.5;
            }
            pthread_barrier_wait(&barrier);
        }
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 12);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < N; i++) re[i] = i % 17, im[i] = i % 5;
    for (int i = 0; i < N / 2; i++) wr[i] = cos(6.283185307179586 * i / N), wi[i] = -sin(6.283185307179586 * i / N);
    run_threads();
    printf("%g\n", re[N / 3]);
}

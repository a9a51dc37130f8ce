/* Successive over-relaxation after the SOR of the thesis: each thread has half of the rows, and reads the boundary row of
   the other one. A barrier stands between the colours. Interior rows belong to one thread for good. */
#include <pthread.h>

#ifndef ROWS
#define ROWS 8
#define COLUMNS 6
#define ITERATIONS 5
#endif
enum { THREADS = 2 };

static double upper[ROWS / 2 - 1][COLUMNS];
static double boundary[2][COLUMNS];
static double lower[ROWS / 2 - 1][COLUMNS];
static double omega;
static pthread_barrier_t phase;

static double *row(int i) {
    if (i < ROWS / 2 - 1)
        return upper[i];
    if (i <= ROWS / 2)
        return boundary[i - (ROWS / 2 - 1)];
    return lower[i - ROWS / 2 - 1];
}

static void *relax(void *arg) {
    int first = *(int *)arg * ROWS / THREADS;
    for (int step = 0; step < 2 * ITERATIONS; step++) {
        for (int i = first; i < first + ROWS / THREADS; i++) {
            if (i % 2 != step % 2 || i == 0 || i == ROWS - 1)
                continue;
            for (int j = 0; j < COLUMNS; j++)
                row(i)[j] += omega * ((row(i - 1)[j] + row(i + 1)[j]) / 2 - row(i)[j]);
        }
        pthread_barrier_wait(&phase);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    pthread_barrier_init(&phase, 0, THREADS);
    omega = 1.25;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            row(i)[j] = i * j;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], 0, relax, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return boundary[0][0] < 0;
}

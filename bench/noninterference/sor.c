// Red-black successive over-relaxation on a grid, with a barrier between the colours.
//
// With -DBUG the barrier is made by hand: every thread publishes its progress as a 64-bit number in two
// halves, which is not one write, and the others look at it without any synchronization.
#include <sched.h>

#include "kernel.h"

#define SIZE SIZED(48, 1000)
#define ITERATIONS SIZED(6, 150)
#define OMEGA 1.25

int iterations = ITERATIONS;
double omega = OMEGA;
static double grid[SIZE][SIZE], alone[SIZE][SIZE];

#ifdef BUG
static struct {
    volatile uint32_t low, high;
} progress[MOST_THREADS];

static void meet(int me) {
    uint64_t now = ((uint64_t)progress[me].high << 32 | progress[me].low) + 1;
    progress[me].low = (uint32_t)now;
    progress[me].high = (uint32_t)(now >> 32);
    for (int other = 0; other < THREADS; other++)
        while (((uint64_t)progress[other].high << 32 | progress[other].low) < now)
            sched_yield();
}
#else
static pthread_barrier_t barrier;

static void meet(int me) {
    (void)me;
    pthread_barrier_wait(&barrier);
}
#endif

static void relax(double g[SIZE][SIZE], int colour, int from, int to) {
    for (int i = from < 1 ? 1 : from; i < (to > SIZE - 1 ? SIZE - 1 : to); i++)
        for (int j = 1 + (i + colour) % 2; j < SIZE - 1; j += 2) {
            double around = g[i - 1][j] + g[i + 1][j] + g[i][j - 1] + g[i][j + 1];
            g[i][j] = omega / 4 * around + (1 - omega) * g[i][j];
        }
}

static void *relax_part(void *arg) {
    struct part *p = arg;
    for (int i = 0; i < iterations; i++) {
        for (int colour = 0; colour < 2; colour++) {
            relax(grid, colour, part_from(SIZE, p->number), part_to(SIZE, p->number));
            if (colour == 1)
                PLANT(i, p, grid[0][0]);
            meet(p->number);
        }
#ifdef EACH_STEP
        if (p->number == 0)
            SELVEDGE_ENSURE_ARRAY("step", grid[0], SIZE * SIZE);
        meet(p->number);
#endif
    }
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    uint64_t state = 4 + (uint64_t)input;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            grid[i][j] = alone[i][j] = next_unit(&state);
#ifndef BUG
    pthread_barrier_init(&barrier, NULL, (unsigned)THREADS);
#endif
    SELVEDGE_DETERMINISTIC_BEGIN("sor");
    SELVEDGE_ASSUME("iterations", iterations);
    SELVEDGE_ASSUME_ARRAY("grid", grid[0], SIZE * SIZE);
    in_parallel(relax_part, NULL);
    SELVEDGE_ENSURE_ARRAY("relaxed", grid[0], SIZE * SIZE);
    SELVEDGE_REGION_END();
#ifndef BUG
    pthread_barrier_destroy(&barrier);
#endif
    for (int i = 0; i < iterations; i++)
        for (int colour = 0; colour < 2; colour++)
            relax(alone, colour, 0, SIZE);
    double got = 0, expected = 0;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            got += grid[i][j];
            expected += alone[i][j];
        }
    return finish("sor", got, expected);
}

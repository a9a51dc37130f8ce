// Particles in a box with forces between all pairs: each thread adds up forces into an array of its own,
// the arrays are added after a barrier, and each thread moves its part of the particles.
#include <math.h>
#include <string.h>

#include "kernel.h"

#define PARTICLES SIZED(96, 1024)
#define STEPS SIZED(4, 30)

struct box {
    double at[PARTICLES][3], speed[PARTICLES][3], force[MOST_THREADS][PARTICLES][3];
};

static struct box shared, alone;
static pthread_barrier_t barrier;

static void forces(struct box *b, int number) {
    memset(b->force[number], 0, sizeof b->force[number]);
    for (int i = number; i < PARTICLES; i += THREADS)
        for (int j = i + 1; j < PARTICLES; j++) {
            double d[3], square = 0.01;
            for (int k = 0; k < 3; k++) {
                d[k] = b->at[i][k] - b->at[j][k];
                square += d[k] * d[k];
            }
            double strength = 1 / (square * sqrt(square));
            for (int k = 0; k < 3; k++) {
                b->force[number][i][k] += strength * d[k];
                b->force[number][j][k] -= strength * d[k];
            }
        }
}

static void move(struct box *b, int from, int to) {
    for (int i = from; i < to; i++)
        for (int k = 0; k < 3; k++) {
            double total = 0;
            for (int t = 0; t < THREADS; t++)
                total += b->force[t][i][k];
            b->speed[i][k] += 0.0001 * total;
            b->at[i][k] += 0.0001 * b->speed[i][k];
        }
}

static void *simulate_part(void *arg) {
    struct part *p = arg;
    for (int s = 0; s < STEPS; s++) {
        forces(&shared, p->number);
        pthread_barrier_wait(&barrier);
        move(&shared, part_from(PARTICLES, p->number), part_to(PARTICLES, p->number));
        PLANT(s, p, shared.at[PARTICLES - 1][0]);
        pthread_barrier_wait(&barrier);
#ifdef EACH_STEP
        if (p->number == 0)
            SELVEDGE_ENSURE_ARRAY("step", shared.at[0], 3 * PARTICLES);
        pthread_barrier_wait(&barrier);
#endif
    }
    return NULL;
}

static double energy(const struct box *b) {
    double total = 0;
    for (int i = 0; i < PARTICLES; i++)
        for (int k = 0; k < 3; k++)
            total += b->speed[i][k] * b->speed[i][k] + b->at[i][k];
    return total;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    uint64_t state = 5 + (uint64_t)input;
    for (int i = 0; i < PARTICLES; i++)
        for (int k = 0; k < 3; k++)
            shared.at[i][k] = alone.at[i][k] = next_unit(&state);
    pthread_barrier_init(&barrier, NULL, (unsigned)THREADS);
    SELVEDGE_DETERMINISTIC_BEGIN("moldyn");
    SELVEDGE_ASSUME_ARRAY("at", shared.at[0], 3 * PARTICLES);
    in_parallel(simulate_part, NULL);
    SELVEDGE_ENSURE_BY("energy", energy(&shared), SELVEDGE_WITHIN(1e-9));
    SELVEDGE_REGION_END();
    pthread_barrier_destroy(&barrier);
    for (int s = 0; s < STEPS; s++) {
        for (int t = 0; t < THREADS; t++)
            forces(&alone, t);
        move(&alone, 0, PARTICLES);
    }
    double got = energy(&shared), expected = energy(&alone);
    return finish("moldyn", got, expected);
}

// LU factorisation with a barrier after each column: one thread finds the pivot, all eliminate.
#include <math.h>

#include "kernel.h"

#define N SIZED(48, 800)

struct matrix {
    double a[N][N];
    int pivots[N];
};

static struct matrix shared, alone;
static pthread_barrier_t barrier;

static void pivot(struct matrix *m, int k) {
    int best = k;
    for (int i = k + 1; i < N; i++)
        if (fabs(m->a[i][k]) > fabs(m->a[best][k]))
            best = i;
    m->pivots[k] = best;
    for (int j = 0; j < N; j++) {
        double t = m->a[k][j];
        m->a[k][j] = m->a[best][j];
        m->a[best][j] = t;
    }
}

static void eliminate(struct matrix *m, int k, int first, int step) {
    for (int i = k + 1 + first; i < N; i += step) {
        double factor = m->a[i][k] / m->a[k][k];
        m->a[i][k] = factor;
        for (int j = k + 1; j < N; j++)
            m->a[i][j] -= factor * m->a[k][j];
    }
}

static void *factor_part(void *arg) {
    struct part *p = arg;
    for (int k = 0; k < N - 1; k++) {
        if (p->number == 0)
            pivot(&shared, k);
        pthread_barrier_wait(&barrier);
        eliminate(&shared, k, p->number, THREADS);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static double sum(const struct matrix *m) {
    double total = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            total += m->a[i][j] * (m->pivots[i] + 1);
    return total;
}

int main(void) {
    uint64_t state = 3;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            shared.a[i][j] = alone.a[i][j] = next_unit(&state) - 0.5;
    pthread_barrier_init(&barrier, NULL, THREADS);
    SELVEDGE_DETERMINISTIC_BEGIN("lufact");
    SELVEDGE_ASSUME_ARRAY("a", shared.a[0], N * N);
    in_parallel(factor_part, NULL);
    SELVEDGE_ENSURE_ARRAY("factored", shared.a[0], N * N);
    SELVEDGE_REGION_END();
    pthread_barrier_destroy(&barrier);
    for (int k = 0; k < N - 1; k++) {
        pivot(&alone, k);
        eliminate(&alone, k, 0, 1);
    }
    double got = sum(&shared), expected = sum(&alone);
    return finish("lufact", got, expected);
}

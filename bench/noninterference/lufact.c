// LU factorisation with a barrier after each column: one thread finds the pivot, all eliminate. Then one thread solves
// a system with it: the solution replaces the right side `b`, and `x` stays what it was.
#include <math.h>

#include "kernel.h"

#define N SIZED(48, 800)

struct matrix {
    double a[N][N];
    int pivots[N];
    double b[N], x[N];
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
        PLANT(k, p, shared.a[0][0]);
        pthread_barrier_wait(&barrier);
#ifdef EACH_STEP
        if (p->number == 0)
            SELVEDGE_ENSURE_ARRAY("step", shared.a[0], N * N);
        pthread_barrier_wait(&barrier);
#endif
    }
    return NULL;
}

static void solve(struct matrix *m) {
    for (int k = 0; k < N - 1; k++) {
        double t = m->b[k];
        m->b[k] = m->b[m->pivots[k]];
        m->b[m->pivots[k]] = t;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            m->b[i] -= m->a[i][j] * m->b[j];
    for (int i = N - 1; i >= 0; i--) {
        for (int j = i + 1; j < N; j++)
            m->b[i] -= m->a[i][j] * m->b[j];
        m->b[i] /= m->a[i][i];
    }
}

static double sum(const struct matrix *m) {
    double total = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            total += m->a[i][j] * (m->pivots[i] + 1);
    for (int i = 0; i < N; i++)
        total += m->b[i];
    return total;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    uint64_t state = 3 + (uint64_t)input;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            shared.a[i][j] = alone.a[i][j] = next_unit(&state) - 0.5;
    for (int i = 0; i < N; i++)
        shared.b[i] = alone.b[i] = next_unit(&state);
    pthread_barrier_init(&barrier, NULL, (unsigned)THREADS);
    SELVEDGE_DETERMINISTIC_BEGIN("lufact");
    SELVEDGE_ASSUME_ARRAY("a", shared.a[0], N * N);
    SELVEDGE_ASSUME_ARRAY("b", shared.b, N);
    in_parallel(factor_part, NULL);
    solve(&shared);
    SELVEDGE_ENSURE_ARRAY("a", shared.a[0], N * N);
    SELVEDGE_ENSURE_ARRAY("pivots", shared.pivots, N);
    SELVEDGE_ENSURE_ARRAY("b", shared.b, N);
    SELVEDGE_REGION_END();
    pthread_barrier_destroy(&barrier);
    for (int k = 0; k < N - 1; k++) {
        pivot(&alone, k);
        eliminate(&alone, k, 0, 1);
    }
    solve(&alone);
    double got = sum(&shared), expected = sum(&alone);
    return finish("lufact", got, expected);
}

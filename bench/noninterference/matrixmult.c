// Matrix multiplication by divide and conquer: the rows are halved into threads until they are few.
#include "kernel.h"

#define N SIZED(48, 480)
#define ALONE_BELOW SIZED(12, 60)

static double a[N][N], b[N][N], c[N][N], expected[N][N];

struct rows {
    int from, to;
};

static void multiply(double out[N][N], int from, int to) {
    for (int i = from; i < to; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                out[i][j] += a[i][k] * b[k][j];
}

static void *multiply_rows(void *arg) {
    struct rows *r = arg;
    if (r->to - r->from <= ALONE_BELOW) {
        multiply(c, r->from, r->to);
    } else {
        int middle = (r->from + r->to) / 2;
        struct rows upper = {r->from, middle}, lower = {middle, r->to};
        pthread_t other;
        if (pthread_create(&other, NULL, multiply_rows, &upper) != 0)
            abort();
        multiply_rows(&lower);
        pthread_join(other, NULL);
    }
    return NULL;
}

int main(void) {
    uint64_t state = 8;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = next_unit(&state);
            b[i][j] = next_unit(&state);
        }
    struct rows all = {0, N};
    multiply_rows(&all);
    multiply(expected, 0, N);
    double got = 0, right = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            got += c[i][j];
            right += expected[i][j];
        }
    return finish("matrixmult", got, right);
}

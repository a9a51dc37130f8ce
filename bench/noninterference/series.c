// The first Fourier coefficients of (x+1)^x on [0,2], one after the other in each thread's part.
#include <math.h>

#include "kernel.h"

#define COEFFICIENTS SIZED(32, 1500)
#define POINTS SIZED(100, 1000)

// How many are computed.
static int wanted = COEFFICIENTS;
static double coefficients[2][COEFFICIENTS], expected[2][COEFFICIENTS];

static double term(double x, double omega, int kind) {
    double y = pow(x + 1.0, x);
    return kind == 0 ? y * cos(omega * x) : y * sin(omega * x);
}

static double integrate(double omega, int kind) {
    double step = 2.0 / POINTS, sum = (term(0, omega, kind) + term(2.0, omega, kind)) / 2;
    for (int i = 1; i < POINTS; i++)
        sum += term(i * step, omega, kind);
    return sum * step;
}

static void compute(double out[2][COEFFICIENTS], int from, int to) {
    for (int i = from; i < to; i++)
        for (int kind = 0; kind < 2; kind++)
            out[kind][i] = integrate(3.14159265358979 * i, kind);
}

static void *compute_part(void *arg) {
    struct part *p = arg;
    compute(coefficients, part_from(wanted, p->number), part_to(wanted, p->number));
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    wanted -= input;
    SELVEDGE_DETERMINISTIC_BEGIN("series");
    SELVEDGE_ASSUME("wanted", wanted);
    in_parallel(compute_part, NULL);
    SELVEDGE_ENSURE_ARRAY("result", coefficients[0], 2 * COEFFICIENTS);
    SELVEDGE_REGION_END();
    compute(expected, 0, wanted);
    double got = 0, right = 0;
    for (int i = 0; i < COEFFICIENTS; i++) {
        got += coefficients[0][i] + coefficients[1][i];
        right += expected[0][i] + expected[1][i];
    }
    return finish("series", got, right);
}

// A sparse matrix times a vector, again and again; each thread has a part of the rows.
#include "kernel.h"

#define ROWS 500
#define PER_ROW 5
#define TIMES 20

static int columns[ROWS][PER_ROW];
static double values[ROWS][PER_ROW], x[ROWS], y[ROWS], expected[ROWS];

static void multiply(double *out, int from, int to) {
    for (int t = 0; t < TIMES; t++)
        for (int row = from; row < to; row++)
            for (int i = 0; i < PER_ROW; i++)
                out[row] += values[row][i] * x[columns[row][i]];
}

static void *multiply_part(void *arg) {
    struct part *p = arg;
    SELVEDGE_DETERMINISTIC_BEGIN("multiply_part");
    multiply(y, part_from(ROWS, p->number), part_to(ROWS, p->number));
    SELVEDGE_DETERMINISTIC_END("multiply_part");
    return NULL;
}

int main(void) {
    SELVEDGE_DETERMINISTIC_BEGIN("main");
    uint64_t state = 2;
    for (int row = 0; row < ROWS; row++) {
        x[row] = next_unit(&state);
        for (int i = 0; i < PER_ROW; i++) {
            columns[row][i] = (int)(next_random(&state) % ROWS);
            values[row][i] = next_unit(&state);
        }
    }
    in_parallel(multiply_part, NULL);
    multiply(expected, 0, ROWS);
    double got = 0, right = 0;
    for (int row = 0; row < ROWS; row++) {
        got += y[row];
        right += expected[row];
    }
    SELVEDGE_DETERMINISTIC_END("main");
    return finish("sparse", got, right);
}

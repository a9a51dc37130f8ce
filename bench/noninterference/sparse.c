// A sparse matrix times a vector, again and again. The matrix is a list of row, column and value, sorted
// by rows, and each thread has the entries of a part of the rows.
#include "kernel.h"

#define ROWS SIZED(500, 20000)
#define PER_ROW 5
#define ENTRIES (ROWS * PER_ROW)
#define TIMES SIZED(5, 700)

static int rows[ENTRIES], columns[ENTRIES];
static double values[ENTRIES], x[ROWS], y[ROWS], expected[ROWS];

static void multiply(double *out, int from, int to) {
    for (int t = 0; t < TIMES; t++)
        for (int i = from; i < to; i++)
            out[rows[i]] += values[i] * x[columns[i]];
}

static void *multiply_part(void *arg) {
    struct part *p = arg;
    multiply(y, part_from(ROWS, p->number) * PER_ROW, part_to(ROWS, p->number) * PER_ROW);
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    uint64_t state = 2 + (uint64_t)input;
    for (int i = 0; i < ENTRIES; i++) {
        rows[i] = i / PER_ROW;
        columns[i] = (int)(next_random(&state) % ROWS);
        values[i] = next_unit(&state);
    }
    for (int row = 0; row < ROWS; row++)
        x[row] = next_unit(&state);
    SELVEDGE_DETERMINISTIC_BEGIN("sparse");
    SELVEDGE_ASSUME_ARRAY("values", values, ENTRIES);
    SELVEDGE_ASSUME_ARRAY("x", x, ROWS);
    in_parallel(multiply_part, NULL);
    SELVEDGE_ENSURE_ARRAY("y", y, ROWS);
    SELVEDGE_REGION_END();
    multiply(expected, 0, ENTRIES);
    double got = 0, right = 0;
    for (int row = 0; row < ROWS; row++) {
        got += y[row];
        right += expected[row];
    }
    return finish("sparse", got, right);
}

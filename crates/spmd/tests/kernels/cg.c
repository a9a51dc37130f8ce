// ranks 4
// CG: rows of a sparse matrix are distributed; the parts of the vector are read after a barrier, and sums are
// collective operations.
#include "kernel.h"

#define ROWS 16

static long part(int of, long *all) {
    MPI_Get(&all[of * ROWS], ROWS, MPI_LONG, of, 0, ROWS, MPI_LONG, win);
    MPI_Win_flush(of, win);
    return 0;
}

static int kernel(void) {
    long *all = calloc((size_t)size * ROWS, sizeof *all), sum = 0, dot = 0;
    share(ROWS);
    for (int i = 0; i < ROWS; i++)
        mem[i] = 1;
    barrier();
    for (int step = 0; step < 5 * scale; step++) {
        for (int of = 0; of < size; of++)
            part(of, all);
        barrier();
        dot = 0;
        for (int i = 0; i < ROWS; i++) {
            int row = rank * ROWS + i, n = size * ROWS;
            // Each column has the sum 1, so the sum of the vector stays.
            mem[i] = (all[row] + all[(row + 5) % n] + all[(row + 11) % n]) % 1009;
            dot += mem[i];
        }
        MPI_Allreduce(MPI_IN_PLACE, &dot, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    for (int i = 0; i < ROWS; i++)
        sum += mem[i];
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    free(all);
    return sum == dot;
}

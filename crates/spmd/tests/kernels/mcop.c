// ranks 4
// The best order of a chain of matrix products: columns are distributed, and a diagonal follows the one before it
// after a barrier.
#include "kernel.h"

#define CHAIN 16

static long dimension(int i) {
    return 5 + i * 7 % 11;
}

static int owner(int column) {
    return column % size;
}

// Where the cell of a row and a column is, with the owner of the column.
static long cell(int row, int column) {
    return (long)(column / size) * CHAIN + row;
}

static long of(int row, int column) {
    long cost;
    if (owner(column) == rank)
        return mem[cell(row, column)];
    GET(&cost, owner(column), cell(row, column));
    MPI_Win_flush(owner(column), win);
    return cost;
}

static int kernel(void) {
    long best = 0, costs[CHAIN][CHAIN] = {{0}};
    share(((long)CHAIN / size + 1) * CHAIN);
    for (int round = 0; round < scale; round++) {
        for (int span = 1; span < CHAIN; span++) {
            for (int row = 0; row + span < CHAIN; row++) {
                int column = row + span;
                if (owner(column) != rank)
                    continue;
                long least = -1;
                for (int k = row; k < column; k++) {
                    long cost = of(row, k) + of(k + 1, column);
                    cost += dimension(row) * dimension(k + 1) * dimension(column + 1);
                    if (least < 0 || cost < least)
                        least = cost;
                }
                mem[cell(row, column)] = least;
            }
            barrier();
        }
        best = of(0, CHAIN - 1);
        barrier();
    }
    for (int span = 1; span < CHAIN; span++)
        for (int row = 0; row + span < CHAIN; row++) {
            int column = row + span;
            for (int k = row; k < column; k++) {
                long cost = costs[row][k] + costs[k + 1][column];
                cost += dimension(row) * dimension(k + 1) * dimension(column + 1);
                if (k == row || cost < costs[row][column])
                    costs[row][column] = cost;
            }
        }
    return best == costs[0][CHAIN - 1];
}

// ranks 4
// MG 2.4: a grid with halos, coarser and finer again; two shared variables are read by all and reset by rank 0 without
// a barrier, and only rank 0 uses them.
#include "kernel.h"

#define CELLS 32
enum { GRID, LARGEST = CELLS + 2, SMALLEST, WORDS };

static void halo(int step) {
    if (rank > 0)
        PUT(&mem[GRID + step], rank - 1, GRID + CELLS + 1);
    if (rank < size - 1)
        PUT(&mem[GRID + CELLS + 1 - step], rank + 1, GRID);
    barrier();
}

static void smooth(int step) {
    for (int i = step; i <= CELLS; i += step)
        mem[GRID + i] = (mem[GRID + i - step] + 2 * mem[GRID + i] + mem[GRID + (i + step <= CELLS ? i + step : CELLS + 1)]) / 4;
    barrier();
}

static int kernel(void) {
    long largest = 0, smallest = 0, kept = 0;
    share(WORDS);
    for (int i = 1; i <= CELLS; i++)
        mem[GRID + i] = rank * CELLS + i;
    if (rank == 0) {
        mem[LARGEST] = size * CELLS;
        mem[SMALLEST] = 1;
    }
    barrier();
    for (int cycle = 0; cycle < scale; cycle++) {
        for (int step = 1; step <= 4; step *= 2) {
            halo(step);
            smooth(step);
        }
        if (rank == 0) {
            kept += mem[LARGEST] - mem[SMALLEST];
            mem[LARGEST] = 0;  // race(largest) benign
            mem[SMALLEST] = 0; // race(smallest) benign
        } else {
            GET(&largest, 0, LARGEST);   // race(largest) benign
            GET(&smallest, 0, SMALLEST); // race(smallest) benign
            MPI_Win_flush(0, win);
        }
        barrier();
    }
    return rank != 0 || kept == size * CELLS - 1;
}

// Weak scaling of a stencil: rows of a grid at each rank, whose edges are put into the ghost rows of two neighbours. The
// ranks are a ring, so that all have the same work.
#include "../../crates/spmd/tests/kernels/kernel.h"

#define WIDTH 64
#define ROWS 16
enum { GRID = WIDTH * (ROWS + 2) };

static int kernel(void) {
    share(2 * GRID);
    int above = (rank + size - 1) % size, below = (rank + 1) % size;
    for (int i = 0; i < 2 * GRID; i++)
        mem[i] = 1024;
    barrier();
    for (int step = 0; step < 10 * scale; step++) {
        long now = (step & 1) * GRID, next = GRID - now;
        MPI_Put(&mem[now + WIDTH], WIDTH, MPI_LONG, above, now + WIDTH * (ROWS + 1), WIDTH, MPI_LONG, win);
        MPI_Put(&mem[now + WIDTH * ROWS], WIDTH, MPI_LONG, below, now, WIDTH, MPI_LONG, win);
        barrier();
        for (int row = 1; row <= ROWS; row++)
            for (int x = 0; x < WIDTH; x++) {
                long at = now + row * WIDTH + x, left = x ? -1 : 0, right = x < WIDTH - 1 ? 1 : 0;
                mem[next + row * WIDTH + x] = (mem[at + left] + mem[at + right] + mem[at - WIDTH] + mem[at + WIDTH]) / 4;
            }
        barrier();
    }
    return mem[WIDTH] == 1024;
}

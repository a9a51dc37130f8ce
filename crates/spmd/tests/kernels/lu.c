// ranks 4
// LU: a wavefront: each rank waits for a message of the rank before it, works, puts its last row to the rank after it,
// and sends it a message.
#include "kernel.h"

#define ROW 16

static int kernel(void) {
    long row[ROW] = {0};
    share(2 * ROW);
    for (int step = 0; step < 5 * scale; step++) {
        long half = step % 2 * ROW;
        if (rank > 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < ROW; i++)
                row[i] = mem[half + i];
        }
        for (int i = 0; i < ROW; i++)
            row[i] += 1;
        if (rank < size - 1) {
            // The half is free when the step before the last one was read.
            if (step > 1)
                MPI_Recv(NULL, 0, MPI_BYTE, rank + 1, 1000 + step - 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Put(row, ROW, MPI_LONG, rank + 1, half, ROW, MPI_LONG, win);
            MPI_Win_flush(rank + 1, win);
            MPI_Send(NULL, 0, MPI_BYTE, rank + 1, step, MPI_COMM_WORLD);
        }
        if (rank > 0)
            MPI_Send(NULL, 0, MPI_BYTE, rank - 1, 1000 + step, MPI_COMM_WORLD);
        if (rank == 0)
            memset(row, 0, sizeof row);
    }
    // The last two acknowledgements.
    for (int step = 5 * scale - 2; step < 5 * scale; step++)
        if (rank < size - 1 && step >= 0)
            MPI_Recv(NULL, 0, MPI_BYTE, rank + 1, 1000 + step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    barrier();
    return rank == 0 || row[0] == rank + 1;
}

// ranks 4
// Heat in a rod: each rank puts its ends into the ghost cells of its neighbours between two barriers.
#include "kernel.h"

#define CELLS 64

static int kernel(void) {
    share(2 * (CELLS + 2));
    long now = 0, sum = 0;
    long *half[2] = {mem, mem + CELLS + 2};
    for (int i = 1; i <= CELLS; i++)
        half[0][i] = half[1][i] = rank == 0 && i == 1 ? 1000000 : 0;
    barrier();
    for (int step = 0; step < 10 * scale; step++) {
        long *from = half[now], *to = half[!now];
        long base = now * (CELLS + 2);
        if (rank > 0)
            PUT(&from[1], rank - 1, base + CELLS + 1);
        if (rank < size - 1)
            PUT(&from[CELLS], rank + 1, base);
        barrier();
        for (int i = 1; i <= CELLS; i++)
            to[i] = (from[i - 1] + 2 * from[i] + from[i + 1]) / 4;
        now = !now;
        barrier();
    }
    for (int i = 1; i <= CELLS; i++)
        sum += half[now][i];
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum > 0 && sum <= 1000000;
}

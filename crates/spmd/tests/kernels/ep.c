// ranks 4
// EP: random numbers are counted by each rank, and the counts are added by a collective operation.
#include "kernel.h"

static int kernel(void) {
    long counts[10] = {0}, all[10], sum = 0;
    for (int i = 0; i < 10000 * scale; i++)
        counts[next_random() % 10]++;
    MPI_Allreduce(counts, all, 10, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++)
        sum += all[i];
    return sum == 10000L * scale * size;
}

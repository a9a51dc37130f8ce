// Weak scaling of random access: in each phase a rank adds to elements of the tables of ranks that it draws, and reads as
// many of a second table that nobody writes.
#include "../../crates/spmd/tests/kernels/kernel.h"

#define WORDS 4096
#define UPDATES 32

static int kernel(void) {
    long sum = 0, kept;
    share(2 * WORDS);
    for (int step = 0; step < 10 * scale; step++) {
        for (int i = 0; i < UPDATES; i++) {
            unsigned long r = next_random();
            int owner = (int)((r >> 20) % (unsigned long)size);
            MPI_Accumulate(&one, 1, MPI_LONG, owner, (long)(r >> 40) % WORDS, 1, MPI_LONG, MPI_SUM, win);
            GET(&kept, owner, WORDS + (long)(r >> 44) % WORDS);
            MPI_Win_flush(owner, win);
            sum += kept;
        }
        barrier();
    }
    for (int i = 0; i < WORDS; i++)
        sum += mem[i];
    long all = 0;
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all == 10L * scale * UPDATES * size;
}

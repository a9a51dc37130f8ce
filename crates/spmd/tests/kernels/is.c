// ranks 4
// IS: keys are counted, places reserved, keys put to the ranks that sort them, and sorted between fences.
#include "kernel.h"

#define KEYS 64
enum { RESERVED, SORTED, WORDS = SORTED + 16 * KEYS };

static int kernel(void) {
    share(WORDS);
    for (int round = 0; round < scale; round++) {
        long keys[KEYS], sum = 0, sorted = 0;
        mem[RESERVED] = 0;
        barrier();
        for (int i = 0; i < KEYS; i++) {
            keys[i] = (long)(next_random() % 1024);
            sum += keys[i];
            int to = (int)(keys[i] * size / 1024);
            long at = atomic_add(1, to, RESERVED);
            PUT(&keys[i], to, SORTED + at);
        }
        barrier();
        long n = mem[RESERVED];
        for (long i = 0; i < n; i++) {
            sorted += mem[SORTED + i];
            if (mem[SORTED + i] * size / 1024 != rank)
                return 0;
        }
        long sums[2] = {sum, sorted};
        MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (sums[0] != sums[1])
            return 0;
        barrier();
    }
    return 1;
}

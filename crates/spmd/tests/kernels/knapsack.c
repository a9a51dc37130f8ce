// ranks 4
// The knapsack problem by dynamic programming, as program 4.1 of the thesis has it: the first weight and the first
// value are read without a barrier after they were written.
#include "kernel.h"

#define ITEMS 12
#define CAPACITY 40
enum { WEIGHT, VALUE = ITEMS, WORDS = 2 * ITEMS };

static long weight[ITEMS], value[ITEMS];

static long solve(void) {
    long best[CAPACITY + 1] = {0};
    for (int i = 0; i < ITEMS; i++)
        for (long room = CAPACITY; room >= weight[i]; room--)
            if (best[room - weight[i]] + value[i] > best[room])
                best[room] = best[room - weight[i]] + value[i];
    return best[CAPACITY];
}

static int kernel(void) {
    long most, least, found;
    share(WORDS);
    // The items are with rank 0, which also chooses them.
    if (rank == 0) {
        for (int i = 1; i < ITEMS; i++) {
            mem[WEIGHT + i] = 2 + i * 5 % 7;
            mem[VALUE + i] = 3 + i * 11 % 13;
        }
    }
    barrier();
    if (rank == 0) {
        mem[WEIGHT] = 1; // race(weight) harmful
        mem[VALUE] = 50; // race(value) harmful
    } else {
        // Work of their own, so that the read seldom wins.
        for (volatile int spin = 0; spin < 2000000; spin++)
            ;
        GET(&weight[0], 0, WEIGHT); // race(weight) harmful
        GET(&value[0], 0, VALUE);   // race(value) harmful
        MPI_Win_flush(0, win);
    }
    barrier();
    for (int i = rank == 0 ? 0 : 1; i < ITEMS; i++) {
        GET(&weight[i], 0, WEIGHT + i);
        GET(&value[i], 0, VALUE + i);
    }
    MPI_Win_flush(0, win);
    for (int i = 0; i < scale; i++)
        found = solve();
    MPI_Allreduce(&found, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&found, &least, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
    return most == least;
}

// Weak scaling of work stealing: each rank has tasks of its own, odd ranks fewer, and who has none left steals from a
// neighbour under that one's lock. The tasks of a round are done when a barrier has been passed.
#include "../../crates/spmd/tests/kernels/kernel.h"

#define MOST 64
enum { LEFT, TASKS, WORDS = TASKS + MOST };

// Takes up to `most` tasks of a rank.
static long take(int victim, long most, long *tasks) {
    long left, n;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, win);
    GET(&left, victim, LEFT);
    MPI_Win_flush(victim, win);
    n = left < most ? left : most;
    if (n > 0) {
        left -= n;
        MPI_Get(tasks, (int)n, MPI_LONG, victim, TASKS + left, (int)n, MPI_LONG, win);
        PUT(&left, victim, LEFT);
    }
    MPI_Win_unlock(victim, win);
    return n;
}

static int kernel(void) {
    MPI_Win_allocate(WORDS * (long)sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
    long tasks[MOST], done = 0, all = 0, n;
    for (int step = 0; step < 10 * scale; step++) {
        long mine = rank % 2 ? MOST / 4 : MOST;
        for (long i = 0; i < mine; i++)
            mem[TASKS + i] = i;
        mem[LEFT] = mine;
        MPI_Barrier(MPI_COMM_WORLD);
        for (int victim = rank, tried = 0; tried < 3 && tried < size; tried++, victim = (victim + 1) % size)
            while ((n = take(victim, 8, tasks)) > 0)
                for (long i = 0; i < n; i++) {
                    for (volatile long spin = 0; spin < tasks[i]; spin++)
                        ;
                    done++;
                }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Allreduce(&done, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win); // The frame unlocks.
    long expected = 0;
    for (int i = 0; i < size; i++)
        expected += 10L * scale * (i % 2 ? MOST / 4 : MOST);
    return all == expected;
}

// What the programs of the corpus share. Every program defines `body`; `FIXED` selects the twin without a race.
// `// race(NAME)` marks the lines of a race, one line if it races with itself; `// predicted(NAME)` marks one that
// locks, atomics or flags may have ordered, `unmet` behind a mark one that no execution can confirm. `// ranks N` says how many ranks to start.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef UNIT
#define UNIT ((int)sizeof(int))
#endif

#define WORDS 64
static int rank, size;
static int *mem;
static MPI_Win win;
static int one = 1, two = 2, out[WORDS];
volatile int sink;

// Up to 20 ms, if the test wants ranks to be late: no finding depends on that.
static void delay(void) {
    const char *seed = getenv("CORPUS_DELAYS");
    static unsigned state;
    if (!seed)
        return;
    if (!state)
        state = (unsigned)atoi(seed) * 7919 + (unsigned)rank * 104729 + 1;
    usleep((unsigned)rand_r(&state) % 20000);
}

static void barrier(void) {
    delay();
    MPI_Barrier(MPI_COMM_WORLD);
    delay();
}

static void use(int value) {
    sink = value;
}

static void put(int *from, int target, int at) {
    MPI_Put(from, 1, MPI_INT, target, at, 1, MPI_INT, win);
}

static void body(void);

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(sizeof(int) * WORDS, UNIT, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
    memset(mem, 0, sizeof(int) * WORDS);
    MPI_Barrier(MPI_COMM_WORLD);
    delay();
    body();
    delay();
    MPI_Win_free(&win);
    MPI_Finalize();
    (void)put, (void)use, (void)barrier;
    return 0;
}

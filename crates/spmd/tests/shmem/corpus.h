// What the programs of the OpenSHMEM corpus share. Every program defines `body`; `FIXED` selects the twin without a race.
// The marks are those of the MPI corpus.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS 64
int mem[WORDS] __attribute__((aligned(64)));
int other[WORDS] __attribute__((aligned(64)));
int flag, flag2;
long wide[8], lock, lock2;
long sync_all_work[SHMEM_REDUCE_SYNC_SIZE], sync_work[SHMEM_REDUCE_SYNC_SIZE];
int reduce_work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 64];
static int me, size;
static int one = 1, two = 2;
volatile int sink;

// Up to 20 ms, if the test wants ranks to be late: no finding depends on that.
static void delay(void) {
    const char *seed = getenv("CORPUS_DELAYS");
    static unsigned state;
    if (!seed)
        return;
    if (!state)
        state = (unsigned)atoi(seed) * 7919 + (unsigned)me * 104729 + 1;
    usleep((unsigned)rand_r(&state) % 20000);
}

static void barrier(void) {
    delay();
    shmem_barrier_all();
    delay();
}

static void use(int value) {
    sink = value;
}

static void body(void);

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    size = shmem_n_pes();
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        sync_all_work[i] = sync_work[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    delay();
    body();
    delay();
    shmem_barrier_all();
    shmem_finalize();
    (void)barrier, (void)use, (void)one, (void)two;
    return 0;
}

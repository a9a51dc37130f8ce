// What the kernels share. They are small forms of the benchmarks in table 8.1 of the thesis, each with the accesses
// that race there, or that are ordered there. `// race(NAME)` marks the lines of a race, one line if it races with
// itself; behind it stand `unmet` if no execution can confirm it, and `harmful` or `benign` for what its orders lead
// to. The first argument scales the work. Every kernel checks its own result.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, scale = 1;
static MPI_Win win;
static long *mem;
static const long one = 1, zero = 0;

static void barrier(void) {
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A window of `words` words at each rank, all 0, open for accesses.
static inline void share(long words) {
    MPI_Win_allocate(words * (long)sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
    memset(mem, 0, (size_t)words * sizeof(long));
    MPI_Win_lock_all(0, win);
    barrier();
}

#define GET(INTO, FROM, AT) MPI_Get(INTO, 1, MPI_LONG, FROM, AT, 1, MPI_LONG, win)
#define PUT(VALUE, TO, AT) MPI_Put(VALUE, 1, MPI_LONG, TO, AT, 1, MPI_LONG, win)

static inline long atomic_add(long value, int at_rank, long at) {
    long old;
    MPI_Fetch_and_op(&value, &old, MPI_LONG, at_rank, at, MPI_SUM, win);
    MPI_Win_flush(at_rank, win);
    return old;
}

static inline long atomic_load(int at_rank, long at) {
    long now;
    MPI_Fetch_and_op(&zero, &now, MPI_LONG, at_rank, at, MPI_NO_OP, win);
    MPI_Win_flush(at_rank, win);
    return now;
}

// A generator of its own for each rank: the same numbers in every execution.
static unsigned long state;

static inline unsigned long next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

// Returns whether the result is right.
static int kernel(void);

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        scale = atoi(argv[1]);
    state = 88172645463325252UL + (unsigned long)rank * 7919;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    int right = kernel(), all = 0;
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begun;
    if (mem) {
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
    if (rank == 0) {
        printf("%s\n", all ? "right" : "wrong");
        if (getenv("KERNEL_TIME"))
            fprintf(stderr, "kernel %.6f\n", took);
    }
    MPI_Finalize();
    return rank == 0 && !all;
}

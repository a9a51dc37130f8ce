// ranks 4
// Search of an unbalanced tree with work stealing. Whether a victim has work is asked without its mutex, and asked
// again under it. The counts are handed over by an atomic counter.
#include "kernel.h"

#define DEEPEST (9 + scale)
enum { AVAILABLE, SHARED, ROOM = 512, OUTSTANDING = SHARED + ROOM, ARRIVED, COUNTS, WORDS = COUNTS + 64 };

static MPI_Win mutex;
static long own[1 << 16], count, done;

static void lock(int at) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, at, 0, mutex);
}

static void unlock(int at) {
    MPI_Win_flush_all(win);
    MPI_Win_unlock(at, mutex);
}

static void set_available(long n) {
    mem[AVAILABLE] = n; // race(owner)
}

// A node is its depth and a number that says how many children it has.
static void visit(long node) {
    long depth = node >> 32, seed = node & 0xffffffff;
    for (volatile int spin = 0; spin < 20000; spin++)
        ;
    done++;
    if (depth >= DEEPEST)
        return;
    int children = depth < 3 ? 2 : 1 + (int)(seed >> 8) % 3;
    for (int i = 0; i < children; i++)
        own[count++] = (depth + 1) << 32 | ((seed * 1103515245 + 12345 + i * 7919) & 0x7fffffff);
}

// Gives half of the work away, or takes back what nobody stole.
static void balance(void) {
    lock(rank);
    long available = mem[AVAILABLE];
    if (available == 0 && count > 1) {
        long n = count / 2 < ROOM ? count / 2 : ROOM;
        memcpy(&mem[SHARED], &own[count - n], (size_t)n * sizeof(long));
        count -= n;
        set_available(n);
    } else if (available > 0 && count == 0) {
        memcpy(own, &mem[SHARED], (size_t)available * sizeof(long));
        count = available;
        set_available(0);
    }
    unlock(rank);
}

static void steal(int victim) {
    long available, left;
    GET(&available, victim, AVAILABLE); // race(owner) race(thief)
    MPI_Win_flush(victim, win);
    if (available == 0)
        return;
    lock(victim);
    GET(&available, victim, AVAILABLE);
    MPI_Win_flush(victim, win);
    long n = (available + 1) / 2;
    if (n > 0) {
        left = available - n;
        MPI_Get(own, (int)n, MPI_LONG, victim, SHARED + left, (int)n, MPI_LONG, win);
        PUT(&left, victim, AVAILABLE); // race(thief)
        MPI_Win_flush(victim, win);
        count = n;
    }
    unlock(victim);
}

static int kernel(void) {
    share(WORDS);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mutex);
    if (rank == 0) {
        own[count++] = 7;
        mem[OUTSTANDING] = 1;
    }
    barrier();
    while (atomic_load(0, OUTSTANDING) > 0) {
        long before = count;
        for (int i = 0; i < 8 && count > 0; i++)
            visit(own[--count]);
        // Nodes that wait, less those that were visited.
        if (before > 0)
            atomic_add(count - before, 0, OUTSTANDING);
        balance();
        for (int i = 1; i < size && count == 0; i++)
            steal((rank + i) % size);
    }
    PUT(&done, 0, COUNTS + rank); // race(counts) unmet
    MPI_Win_flush(0, win);
    atomic_add(1, 0, ARRIVED);
    long sum = 0;
    if (rank == 0) {
        while (atomic_load(0, ARRIVED) < size)
            ;
        for (int i = 0; i < size; i++)
            sum += mem[COUNTS + i]; // race(counts) unmet
    }
    barrier();
    MPI_Win_free(&mutex);
    // The same tree, without anybody else.
    count = 0;
    done = 0;
    if (rank == 0) {
        own[count++] = 7;
        while (count > 0)
            visit(own[--count]);
    }
    return sum == done;
}

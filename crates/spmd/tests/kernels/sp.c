// ranks 4
// SP 3.3: faces go round the ranks, and flags of the program's own say when they are there and when they were used.
#include "kernel.h"

enum { FACES = 8, THERE = FACES, USED = 2 * FACES, WORDS = 3 * FACES };

static long round_number, face, got[FACES];

static int after(void) {
    return (rank + 1) % size;
}

static int before(void) {
    return (rank + size - 1) % size;
}

// The next rank has used what was put in the round before.
static void wait_until_used(int f) {
    while (atomic_load(rank, USED + f) < round_number)
        ;
    face = round_number * 100 + f + rank;
}

static void say_that_it_is_there(int f) {
    MPI_Win_flush(after(), win);
    atomic_add(1, after(), THERE + f);
}

static void wait_until_there(int f) {
    while (atomic_load(rank, THERE + f) <= round_number)
        ;
}

#define SEND(F) wait_until_used(F), PUT(&face, after(), F), say_that_it_is_there(F)
#define TAKE(F) wait_until_there(F), got[F] = mem[F], atomic_add(1, before(), USED + F)

static int kernel(void) {
    share(WORDS);
    for (round_number = 0; round_number < 2 * scale; round_number++) {
        SEND(0); // race(0) unmet
        SEND(1); // race(1) unmet
        SEND(2); // race(2) unmet
        SEND(3); // race(3) unmet
        SEND(4); // race(4) unmet
        SEND(5); // race(5) unmet
        SEND(6); // race(6) unmet
        SEND(7); // race(7) unmet
        TAKE(0); // race(0) unmet
        TAKE(1); // race(1) unmet
        TAKE(2); // race(2) unmet
        TAKE(3); // race(3) unmet
        TAKE(4); // race(4) unmet
        TAKE(5); // race(5) unmet
        TAKE(6); // race(6) unmet
        TAKE(7); // race(7) unmet
        for (int f = 0; f < FACES; f++)
            if (got[f] != round_number * 100 + f + before())
                return 0;
    }
    barrier();
    return 1;
}

// Correct: two threads take turns by an atomic number, and yield while it is not their turn.
#include "../shape.h"
#include <sched.h>
#include <stdatomic.h>

enum { ROUNDS = 4 };
static atomic_int turn;
static int moves;

static void *play(void *arg) {
    int me = *(int *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(&turn) != me) sched_yield();
        moves++;
        atomic_store(&turn, 1 - me);
    }
    return NULL;
}

int main(void) {
    static int sides[2] = {0, 1};
    pthread_t players[2] = {start(play, &sides[0]), start(play, &sides[1])};
    join(players[0]);
    join(players[1]);
    assert(moves == 2 * ROUNDS);
    return 0;
}

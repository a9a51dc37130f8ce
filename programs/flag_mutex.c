// Shape: mutual exclusion by two flags, asked for before the own one is raised.
// Idea: a first attempt at Dekker's algorithm, as Dijkstra tells its history (1965).
// Shows: the assertion, if both have looked before either has raised its flag.
// Fixed: Peterson's algorithm.
#include "shape.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int wants[2], inside;
#ifdef FIXED
static atomic_int turn;
#endif

static void enter(int me) {
#ifdef FIXED
    atomic_store(&wants[me], 1);
    atomic_store(&turn, !me);
    while (atomic_load(&wants[!me]) && atomic_load(&turn) != me) sched_yield();
#else
    while (atomic_load(&wants[!me])) sched_yield();
    atomic_store(&wants[me], 1);
#endif
}

static void *run(void *arg) {
    int me = *(const int *)arg;
    enter(me);
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_sub(&inside, 1);
    atomic_store(&wants[me], 0);
    return NULL;
}

int main(void) {
    static int names[2] = {0, 1};
    pthread_t a = start(run, &names[0]), b = start(run, &names[1]);
    join(a);
    join(b);
    return 0;
}

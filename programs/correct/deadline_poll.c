// Correct: a thread polls with a pause until a deadline of the clock, and gives up then; both are fine.
#include "../shape.h"
#include <stdatomic.h>
#include <time.h>

static atomic_int answer;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *reply(void *arg) {
    work(20);
    atomic_store(&answer, 7);
    return arg;
}

static void *ask(void *arg) {
    const struct timespec pause = {0, 500000};
    const long deadline = now() + 5000000;
    int seen;
    while ((seen = atomic_load(&answer)) == 0 && now() < deadline) nanosleep(&pause, NULL);
    assert(seen == 0 || seen == 7);
    return arg;
}

int main(void) {
    pthread_t asks = start(ask, NULL), replies = start(reply, NULL);
    join(asks);
    join(replies);
    return 0;
}

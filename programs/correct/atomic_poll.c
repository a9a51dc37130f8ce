// Correct: a thread spins on an atomic flag, which publishes plain data.
#include "../shape.h"
#include <stdatomic.h>

static atomic_int ready;
static int data[4];

static void *produce(void *arg) {
    for (int i = 0; i < 4; i++) data[i] = i + 1;
    atomic_store_explicit(&ready, 1, memory_order_release);
    return arg;
}

static void *spin(void *arg) {
    while (!atomic_load_explicit(&ready, memory_order_acquire)) {
    }
    assert(data[0] + data[1] + data[2] + data[3] == 10);
    return arg;
}

int main(void) {
    pthread_t spinning[3];
    for (int i = 0; i < 3; i++) spinning[i] = start(spin, NULL);
    pthread_t producer = start(produce, NULL);
    join(producer);
    for (int i = 0; i < 3; i++) join(spinning[i]);
    return 0;
}

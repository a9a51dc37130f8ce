// Correct: a thread tries a semaphore until it gets it, and counts how often it did not.
#include "../shape.h"
#include <semaphore.h>

static sem_t filled;
static int slots[3], written;

static void *fill(void *arg) {
    for (int i = 0; i < 3; i++) {
        slots[written++] = i + 1;
        sem_post(&filled);
    }
    return arg;
}

static void *drain(void *arg) {
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        while (sem_trywait(&filled) != 0) work(1);
        sum += slots[i];
    }
    assert(sum == 6);
    return arg;
}

int main(void) {
    sem_init(&filled, 0, 0);
    pthread_t drains = start(drain, NULL), fills = start(fill, NULL);
    join(fills);
    join(drains);
    sem_destroy(&filled);
    return 0;
}

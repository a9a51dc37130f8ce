// Shape: semaphore misuse. A semaphore that guards one resource is released once too often on a path
// for errors.
// Idea: clean-up code that releases what it did not acquire.
// Shows: the assertion, if two threads are in the section after the failed attempt.
// Fixed: the failed attempt releases nothing.
#include "shape.h"
#include <semaphore.h>
#include <stdatomic.h>

static sem_t guard;
static atomic_int inside;

static int try_enter(void) {
    if (sem_trywait(&guard) == 0) return 1;
#ifndef FIXED
    sem_post(&guard); // Clean-up of what was not done.
#endif
    return 0;
}

static void section(void) {
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_sub(&inside, 1);
    sem_post(&guard);
}

static void *polite(void *arg) {
    sem_wait(&guard);
    section();
    return arg;
}

static void *hasty(void *arg) {
    if (try_enter()) section();
    return arg;
}

int main(void) {
    sem_init(&guard, 0, 1);
    pthread_t a = start(polite, NULL), b = start(hasty, NULL);
    work(40);
    pthread_t c = start(polite, NULL);
    join(a);
    join(b);
    join(c);
    return 0;
}

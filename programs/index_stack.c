// Shape: lock-free stack of indices. An index is taken, put back and taken again while a slow pop still
// holds what it read of it: five preemptions among three threads.
// Idea: the stack that D. Vyukov posted to the CHESS forum, known as SafeStack in SCTBench.
// Shows: the assertion, if two threads own one index at the same time.
// Fixed: push and pop are critical sections.
#include "shape.h"
#include <stdatomic.h>

enum { THREADS = 3, ROUNDS = 2, NONE = -1 };
static atomic_int next[THREADS], owner[THREADS];
static atomic_int top, left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
}

static void leave(void) {
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

// One attempt; the bottom index is never taken.
static int pop(void) {
    while (atomic_load(&left) > 1) {
        int index = atomic_load(&top);
        int below = atomic_exchange(&next[index], NONE);
        if (below == NONE) continue;
        int expected = index;
        if (atomic_compare_exchange_strong(&top, &expected, below)) {
            atomic_fetch_sub(&left, 1);
            return index;
        }
        atomic_exchange(&next[index], below);
    }
    return NONE;
}

static void push(int index) {
    int below = atomic_load(&top);
    do atomic_store(&next[index], below);
    while (!atomic_compare_exchange_strong(&top, &below, index));
    atomic_fetch_add(&left, 1);
}

static void *use(void *arg) {
    for (int round = 0; round < ROUNDS; round++) {
        enter();
        int index = pop();
        leave();
        if (index == NONE) continue;
        assert(atomic_fetch_add(&owner[index], 1) == 0);
        atomic_fetch_sub(&owner[index], 1);
        enter();
        push(index);
        leave();
    }
    return arg;
}

int main(void) {
    pthread_t threads[THREADS];
    (void)lock;
    for (int i = 0; i < THREADS; i++) atomic_store(&next[i], i - 1);
    atomic_store(&next[0], NONE);
    atomic_store(&top, THREADS - 1);
    atomic_store(&left, THREADS);
    for (int i = 0; i < THREADS; i++) threads[i] = start(use, NULL);
    for (int i = 0; i < THREADS; i++) join(threads[i]);
    return 0;
}

// Correct: a spinlock of compare-exchange, with a look in between.
#include "../shape.h"
#include <stdatomic.h>

static atomic_int held;
static int count;

static void lock(void) {
    for (;;) {
        int expected = 0;
        if (atomic_compare_exchange_weak_explicit(&held, &expected, 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return;
        while (atomic_load_explicit(&held, memory_order_relaxed)) {
        }
    }
}

static void unlock(void) {
    atomic_store_explicit(&held, 0, memory_order_release);
}

static void *add(void *arg) {
    for (int i = 0; i < 3; i++) {
        lock();
        count++;
        unlock();
    }
    return arg;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) threads[i] = start(add, NULL);
    for (int i = 0; i < 3; i++) join(threads[i]);
    assert(count == 9);
    return 0;
}

#include "corpus.h"
#include <stdatomic.h>
#ifdef FIXED
#define FENCE(order) atomic_thread_fence(order)
#else
#define FENCE(order) ((void)0)
#endif
int data;
static atomic_int flag;
static void *producer(void *arg) {
    data = 1; // race(data)
    FENCE(memory_order_release);
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    return arg;
}
static void *consumer(void *arg) {
    while (!atomic_load_explicit(&flag, memory_order_relaxed)) sched_yield();
    FENCE(memory_order_acquire);
    return data ? arg : NULL; // race(data)
}
int main(void) { both(producer, consumer); return 0; }

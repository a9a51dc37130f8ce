#include "corpus.h"
#include <stdatomic.h>
// A read-modify-write continues a release sequence; a relaxed store breaks it.
int data;
static atomic_int step;
static void *producer(void *arg) {
    data = 1; // race(data)
    atomic_store_explicit(&step, 1, memory_order_release);
    return arg;
}
static void *middle(void *arg) {
    while (atomic_load_explicit(&step, memory_order_relaxed) != 1) sched_yield();
#ifdef FIXED
    atomic_fetch_add_explicit(&step, 1, memory_order_relaxed);
#else
    atomic_store_explicit(&step, 2, memory_order_relaxed);
#endif
    return arg;
}
static void *consumer(void *arg) {
    while (atomic_load_explicit(&step, memory_order_relaxed) != 2) sched_yield();
    if (atomic_load_explicit(&step, memory_order_acquire) != 2) abort();
    return data ? arg : NULL; // race(data)
}
int main(void) {
    pthread_t t = start(middle, NULL);
    both(producer, consumer);
    pthread_join(t, NULL);
    return 0;
}

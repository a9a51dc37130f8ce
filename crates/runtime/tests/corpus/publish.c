#include "corpus.h"
#include <stdatomic.h>
#ifdef FIXED
#define ORDER_OUT memory_order_release
#define ORDER_IN memory_order_acquire
#else
#define ORDER_OUT memory_order_relaxed
#define ORDER_IN memory_order_relaxed
#endif
int data;
static atomic_int flag;
static void *producer(void *arg) {
    data = 1; // race(data)
    atomic_store_explicit(&flag, 1, ORDER_OUT);
    return arg;
}
static void *consumer(void *arg) {
    while (!atomic_load_explicit(&flag, ORDER_IN)) sched_yield();
    return data ? arg : NULL; // race(data)
}
int main(void) { both(producer, consumer); return 0; }

#include "corpus.h"
#include <stdatomic.h>
void __tsan_acquire(void *);
void __tsan_release(void *);
// Order that only an annotation tells: the flag by itself orders nothing.
int data;
static atomic_int told;
static void *producer(void *arg) {
    data = 1; // race(data)
#ifdef FIXED
    __tsan_release(&data);
#endif
    atomic_store_explicit(&told, 1, memory_order_relaxed);
    return arg;
}
static void *consumer(void *arg) {
    while (!atomic_load_explicit(&told, memory_order_relaxed)) sched_yield();
#ifdef FIXED
    __tsan_acquire(&data);
#endif
    return data ? arg : NULL; // race(data)
}
int main(void) { both(producer, consumer); return 0; }

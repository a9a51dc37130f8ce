// A value handed over by a flag: the writer needs a fence before the flag. No schedule makes the two
// accesses meet, so only the order that the fences give says whether there is a race.
#include <pthread.h>
#include <stdatomic.h>

long value;
atomic_int ready;

static void *writer(void *argument) {
    value = 42;
#ifdef FIXED
    atomic_thread_fence(memory_order_release);
#endif
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    long seen = 42;
    if (atomic_load_explicit(&ready, memory_order_relaxed)) {
        atomic_thread_fence(memory_order_acquire);
        seen = value;
    }
    pthread_join(thread, NULL);
    return seen != 42;
}

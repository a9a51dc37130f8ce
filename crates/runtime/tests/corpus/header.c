#include "corpus.h"
#include <stdatomic.h>
#include "../../include/selvedge.h"
// Order that only the header tells; and a counter that may be wrong on purpose.
int data, statistics;
static atomic_int told;
static void *producer(void *arg) {
    data = 1; // race(data)
#ifdef FIXED
    SELVEDGE_HAPPENS_BEFORE(&told);
    SELVEDGE_IGNORE_BEGIN();
#endif
    statistics++; // race(statistics)
#ifdef FIXED
    SELVEDGE_IGNORE_END();
#endif
    atomic_store_explicit(&told, 1, memory_order_relaxed);
    return arg;
}
static void *consumer(void *arg) {
    SELVEDGE_ATOMIC_BEGIN("take");
    while (!atomic_load_explicit(&told, memory_order_relaxed)) sched_yield();
    SELVEDGE_REGION_END();
#ifdef FIXED
    SELVEDGE_HAPPENS_AFTER(&told);
#else
    statistics++; // race(statistics)
#endif
    return data ? arg : NULL; // race(data)
}
int main(void) {
    pthread_t t = start(producer, NULL);
#ifdef FIXED
    SELVEDGE_IGNORE_BEGIN();
    statistics++;
    SELVEDGE_IGNORE_END();
#endif
    void *seen = consumer(&data);
    pthread_join(t, NULL);
    return seen == NULL && data != 1;
}

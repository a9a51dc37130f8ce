// Atomics-heavy: a shared counter, a compare-exchange loop and a release/acquire flag per round.
#include <stdatomic.h>
#include "common.h"
static atomic_long counter, maximum;
static _Alignas(64) atomic_int flag[THREADS];
static int rounds;
static void *work(void *id) {
    int me = (int)(intptr_t)id;
    for (int i = 0; i < rounds; i++) {
        atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
        long seen = atomic_load_explicit(&maximum, memory_order_acquire);
        while (seen < i && !atomic_compare_exchange_weak(&maximum, &seen, i)) {}
        atomic_store_explicit(&flag[me], i, memory_order_release);
        if (atomic_load_explicit(&flag[1 - me], memory_order_acquire) < 0) return id;
    }
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 1000000);
    run_threads();
    printf("%ld %ld\n", atomic_load(&counter), atomic_load(&maximum));
}

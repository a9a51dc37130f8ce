// Shared by the programs with OpenMP. Parts of a program meet, or wait for each other, by relaxed atomics, which
// order nothing: so a race shows in every run, whichever thread the library gives a task to.
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#ifdef __cplusplus
#include <atomic>
using namespace std;
#else
#include <stdatomic.h>
#endif

static atomic_int met, done;

// Returns when `n` parts are here, each in a thread of its own. They go on one well after the other, because accesses
// within the same few nanoseconds may be missed. What is fixed may order them: there it does nothing.
static inline void meet(int n) {
#ifndef FIXED
    int before = atomic_fetch_add_explicit(&met, 1, memory_order_relaxed);
    while (atomic_load_explicit(&met, memory_order_relaxed) < n) sched_yield();
    for (int i = 0; i < 100 * before; i++) sched_yield();
#endif
    (void)n;
}

// A part is over, and another one waits until `n` are.
static inline void is_done(void) { atomic_fetch_add_explicit(&done, 1, memory_order_relaxed); }
static inline void wait_for(int n) {
    while (atomic_load_explicit(&done, memory_order_relaxed) < n) sched_yield();
}

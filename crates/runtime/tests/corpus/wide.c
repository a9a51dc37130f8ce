#include "corpus.h"
// Two words under one compare-and-swap of sixteen bytes.
#define WIDE __attribute__((target("cx16")))
typedef unsigned __int128 wide;
#ifdef FIXED
enum { SUCCESS = __ATOMIC_ACQ_REL, LOAD = __ATOMIC_ACQUIRE };
#else
enum { SUCCESS = __ATOMIC_RELAXED, LOAD = __ATOMIC_RELAXED };
#endif
static _Alignas(16) wide top, total;
int item;
WIDE static void *pushes(void *arg) {
    item = 7; // race(item)
    wide seen = 0;
    while (!__atomic_compare_exchange_n(&top, &seen, seen + ((wide)1 << 64) + 1, 0, SUCCESS, LOAD)) {} // race(top)
    for (int i = 0; i < 1000; i++) __atomic_fetch_add(&total, ((wide)1 << 64) + 1, __ATOMIC_RELAXED);
    return arg;
}
WIDE static void *pops(void *arg) {
    while (__atomic_load_n(&top, LOAD) == 0) sched_yield();
    item++; // race(item)
#ifndef FIXED
    top++; // race(top)
#endif
    for (int i = 0; i < 1000; i++) __atomic_fetch_sub(&total, (wide)1 << 64, __ATOMIC_RELAXED);
    return arg;
}
int main(void) {
    both(pushes, pops);
    return total != 1000 || item != 8;
}

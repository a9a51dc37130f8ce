#include "corpus.h"
// Atomics of every width and kind as a spin lock around plain data.
#define LOCKED(T, n)                                                                        \
    static T lock##n;                                                                       \
    static int data##n;                                                                     \
    static void *work##n(void *arg) {                                                       \
        for (;;) {                                                                          \
            T free = 0;                                                                     \
            if (__atomic_compare_exchange_n(&lock##n, &free, 1, 0, __ATOMIC_ACQUIRE,        \
                                            __ATOMIC_RELAXED))                              \
                break;                                                                      \
            sched_yield();                                                                  \
        }                                                                                   \
        data##n++;                                                                          \
        __atomic_fetch_sub(&lock##n, 1, __ATOMIC_RELEASE);                                  \
        return arg;                                                                         \
    }
LOCKED(uint8_t, 8)
LOCKED(uint16_t, 16)
LOCKED(uint32_t, 32)
LOCKED(uint64_t, 64)
int plain;
static void *bad(void *arg) {
#ifdef FIXED
    __atomic_fetch_or(&plain, 1, __ATOMIC_RELAXED);
    __atomic_fetch_xor(&plain, 2, __ATOMIC_RELAXED);
    __atomic_fetch_and(&plain, 3, __ATOMIC_RELAXED);
    __atomic_fetch_nand(&plain, 3, __ATOMIC_RELAXED);
    __atomic_exchange_n(&plain, 4, __ATOMIC_ACQ_REL);
#else
    plain |= 1; // race(plain)
#endif
    return arg;
}
int main(void) {
    both(work8, work8);
    both(work16, work16);
    both(work32, work32);
    both(work64, work64);
    both(bad, bad);
    return data8 + data16 + data32 + data64 != 8;
}

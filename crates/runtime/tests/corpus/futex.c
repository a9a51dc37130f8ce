#include "corpus.h"
#include <linux/futex.h>
#include <sys/syscall.h>
// A lock made of futexes, as language runtimes have them.
int word, x;
static void lock(void) {
    int free = 0;
    if (__atomic_compare_exchange_n(&word, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}
static void unlock(void) {
    if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static void *f(void *arg) {
#ifdef FIXED
    for (int i = 0; i < 1000; i++) {
        lock();
        x++;
        unlock();
    }
#else
    x++; // race(x)
    lock();
    unlock();
#endif
    return arg;
}
int main(void) {
#ifdef FIXED
    both(f, f);
    return x != 2000;
#else
    pthread_t t = start(f, NULL);
    x++; // race(x)
    pthread_join(t, NULL);
    return 0;
#endif
}

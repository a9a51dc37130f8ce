#include "corpus.h"
#include <fcntl.h>
#include <stdatomic.h>
// A descriptor that one thread closes while another uses it; one that is used after its number was given out again;
// one that is closed twice, the second time as another file.
static int in_use, stale, ends[2];
static atomic_int turn;
static void until(int n) {
    while (atomic_load_explicit(&turn, memory_order_relaxed) != n) sched_yield();
}
static void next(int n) { atomic_store_explicit(&turn, n, memory_order_relaxed); }
static void *writes(void *arg) {
    write(in_use, "x", 1); // race(in_use)
    next(1);
    return arg;
}
static void *reopens(void *arg) {
    until(2);
    int fd = open("/dev/null", O_WRONLY); // race(stale)
    if (fd != stale) abort();
    next(3);
    return arg;
}
int main(void) {
    in_use = open("/dev/null", O_WRONLY);
    pthread_t t = start(writes, NULL);
#ifdef FIXED
    pthread_join(t, NULL);
    close(in_use);
#else
    until(1);
    close(in_use); // race(in_use)
    pthread_join(t, NULL);
#endif
    stale = open("/dev/null", O_WRONLY);
    pthread_t u = start(reopens, NULL);
    close(stale);
    next(2);
#ifdef FIXED
    pthread_join(u, NULL);
    write(stale, "x", 1);
#else
    until(3);
    write(stale, "x", 1); // race(stale)
    pthread_join(u, NULL);
#endif
    // The end of a pipe is closed by the thread that writes, and the thread that reads sees the end.
    if (pipe(ends) != 0) return 1;
    char byte;
    close(ends[1]);
    return read(ends[0], &byte, 1) != 0;
}

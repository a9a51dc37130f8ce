#include "corpus.h"
#include <fcntl.h>
#include <stdatomic.h>
// State by descriptor: who gets the number next comes after who closed it.
int state[64];
static atomic_int closed;
static void *former(void *arg) {
    int fd = open("/dev/null", O_RDONLY);
#ifdef FIXED
    state[fd] = 1;
    close(fd);
#else
    close(fd);
    state[fd] = 1; // race(state)
#endif
    atomic_store_explicit(&closed, 1, memory_order_relaxed);
    return arg;
}
static void *latter(void *arg) {
    while (!atomic_load_explicit(&closed, memory_order_relaxed)) sched_yield();
    int fd = open("/dev/null", O_RDONLY);
    state[fd] = 2; // race(state)
    close(fd);
    return arg;
}
int main(void) { both(former, latter); return 0; }

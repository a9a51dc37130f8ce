#include "corpus.h"
#include <signal.h>
#include <stdatomic.h>
// What was done before a handler was installed, or before the signal was sent to the thread, comes before the
// handler runs, in whichever thread.
int before_handler, before_signal, before_kill;
static atomic_int ready, handled;
static void on_signal(int signal) {
    int sum = before_handler;      // race(handler)
    sum += before_signal;          // race(signal)
    sum += before_kill;            // race(kill)
    atomic_fetch_add_explicit(&handled, 1 + (sum + signal < 0), memory_order_relaxed);
}
static void *waits(void *arg) {
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    while (atomic_load_explicit(&handled, memory_order_relaxed) < 2) usleep(100);
    return arg;
}
static void wait_for(atomic_int *value, int least) {
    while (atomic_load_explicit(value, memory_order_relaxed) < least) usleep(100);
}
int main(void) {
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t t = start(waits, NULL);
    wait_for(&ready, 1);
#ifdef FIXED
    before_handler = 1;
#endif
    sigaction(SIGUSR1, &action, NULL);
    sigset_t usr;
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr, NULL); // so that the other thread takes it
#ifdef FIXED
    before_signal = 1;
    before_kill = 1;
#endif
    pthread_kill(t, SIGUSR1);
    wait_for(&handled, 1);
    kill(getpid(), SIGUSR1);
#ifndef FIXED
    before_handler = 1; // race(handler)
    before_signal = 1;  // race(signal)
    before_kill = 1;    // race(kill)
#endif
    wait_for(&handled, 2);
    pthread_join(t, NULL);
    return 0;
}

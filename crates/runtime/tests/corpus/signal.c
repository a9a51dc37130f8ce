#include "corpus.h"
#include <signal.h>
// A handler runs in a thread and belongs to it.
volatile int hits;
int x;
static void on_signal(int s) {
    (void)s;
    hits++;
}
static void *f(void *arg) {
#ifdef FIXED
    (void)x;
#else
    x++; // race(x)
#endif
    return arg;
}
int main(void) {
    struct sigaction a = {.sa_handler = on_signal}, old;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR1, NULL, &old);
    if (old.sa_handler != on_signal) return 9;
    pthread_t t = start(f, NULL);
    for (int i = 0; i < 100; i++) raise(SIGUSR1);
#ifndef FIXED
    x++; // race(x)
#endif
    pthread_join(t, NULL);
    return hits != 100;
}

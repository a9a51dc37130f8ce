#include "corpus.h"
#include <signal.h>
// A thread that waits for a signal comes after what was done before the signal was sent.
int x;
static sigset_t usr;
static void *waits(void *arg) {
    int signal;
    if (sigwait(&usr, &signal) != 0 || signal != SIGUSR1) abort();
    x++; // race(x)
    return arg;
}
int main(void) {
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr, NULL);
    pthread_t t = start(waits, NULL);
#ifdef FIXED
    x++;
    pthread_kill(t, SIGUSR1);
#else
    pthread_kill(t, SIGUSR1);
    x++; // race(x)
#endif
    pthread_join(t, NULL);
    return 0;
}

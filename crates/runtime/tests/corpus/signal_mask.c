#include "corpus.h"
#include <signal.h>
#include <sys/time.h>
// While a handler runs, its signal and what its mask names wait; with what the kernel says about them.
int x;
static volatile sig_atomic_t inside, entered_again, hits, queued, values;
static void on_alarm(int signal) {
    hits++;
    if (inside++) entered_again++;
    int p[2];
    char c = (char)signal;
    if (pipe(p) == 0) {
        if (write(p[1], &c, 1) == 1 && read(p[0], &c, 1) != 1) entered_again++;
        close(p[0]);
        close(p[1]);
    }
    inside--;
}
static void on_queued(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    if (inside) entered_again++;
    queued++;
    values += info->si_value.sival_int;
}
static void *other(void *arg) {
#ifndef FIXED
    x++; // race(x)
#endif
    return arg;
}
int main(void) {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGALRM);
    sigaddset(&both, SIGRTMIN);
    struct sigaction alarms = {.sa_handler = on_alarm, .sa_mask = both};
    struct sigaction values_of = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO, .sa_mask = both};
    sigaction(SIGALRM, &alarms, NULL);
    sigaction(SIGRTMIN, &values_of, NULL);
    pthread_sigmask(SIG_BLOCK, &both, NULL);
    pthread_t t = start(other, NULL);
    pthread_sigmask(SIG_UNBLOCK, &both, NULL);
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 5000; i++) {
        int p[2];
        if (pipe(p) != 0) return 1;
        close(p[0]);
        close(p[1]);
        if (i % 50 == 0 && sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 3}) != 0) return 2;
    }
    setitimer(ITIMER_REAL, &never, NULL);
#ifndef FIXED
    x++; // race(x)
#endif
    pthread_join(t, NULL);
    if (entered_again != 0 || hits == 0) return 3;
    return queued != 100 || values != 300;
}

#include "corpus.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
// A handler that runs in a thread is ordered with all that the thread does, also where it interrupts calls
// that order threads.
int shared;
static int to_handler[2];
static void on_signal(int signal) {
    int saved = errno;
    char c = (char)signal;
    while (write(to_handler[1], &c, 1) < 0 && errno == EINTR) {}
    while (read(to_handler[0], &c, 1) < 0 && errno == EINTR) {}
    shared++; // race(shared)
    errno = saved;
}
static void *other(void *arg) {
#ifndef FIXED
    shared++; // race(shared)
#endif
    return arg;
}
int main(void) {
    if (pipe(to_handler) != 0) return 1;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    pthread_t t = start(other, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
    for (int i = 0; i < 3000; i++) {
        int p[2];
        char c = 0;
        if (pipe(p) != 0) return 2;
        pthread_rwlock_wrlock(&rw);
        shared++; // race(shared)
        pthread_rwlock_unlock(&rw);
        if (write(p[1], &c, 1) != 1 || read(p[0], &c, 1) != 1) return 3;
        close(p[0]);
        close(p[1]);
        shared++; // race(shared)
    }
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_join(t, NULL);
    return 0;
}

#include "corpus.h"
#include <errno.h>
#include <signal.h>
// Handlers that leave errno changed, that allocate or that lock; the signal comes while the program computes.
static volatile sig_atomic_t errno_done, malloc_done, lock_done;
static void *volatile sink;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void closes(int signal) { // race(errno) optional
    (void)signal;
#ifdef FIXED
    int saved = errno;
#endif
    close(-1);
#ifdef FIXED
    errno = saved;
#endif
    errno_done = 1;
}
static void allocates(int signal) {
    (void)signal;
#ifndef FIXED
    sink = malloc(8); // race(malloc)
#endif
    malloc_done = 1;
}
static void locks(int signal) {
    (void)signal;
#ifndef FIXED
    pthread_mutex_lock(&m); // race(lock)
    pthread_mutex_unlock(&m);
#endif
    lock_done = 1;
}
// A handler may do what it likes to a thread that waits for its signal.
static void whatever(int signal) {
    (void)signal;
    sink = malloc(8);
}
static void alarm_in(long microseconds) {
    ualarm(microseconds, 0);
}
int main(void) {
    errno = 0;
    signal(SIGALRM, closes); // race(errno)
    for (alarm_in(1000); !errno_done;);
    signal(SIGALRM, allocates); // race(malloc)
    for (alarm_in(1000); !malloc_done;);
    signal(SIGALRM, locks); // race(lock)
    for (alarm_in(1000); !lock_done;);
    signal(SIGALRM, whatever);
    alarm_in(1000);
    pause();
    signal(SIGUSR1, whatever);
    raise(SIGUSR1);
    return 0;
}

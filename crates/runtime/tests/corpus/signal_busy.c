#include "corpus.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
// Signals by the thousand, many of which come while the thread is inside the runtime. Nothing but the
// mutex orders the threads. Were it not volatile, clang would keep the data in a register meanwhile.
volatile int data;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static atomic_int handled, stop;
static void on_signal(int signal) {
    (void)signal;
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
}
static void *works(void *arg) {
    // At least once, also if the other has had the processor all the time.
    do {
#ifdef FIXED
        pthread_mutex_lock(&m);
#endif
        data++; // race(data)
#ifdef FIXED
        pthread_mutex_unlock(&m);
#endif
        atomic_fetch_add_explicit(&handled, 0, memory_order_relaxed);
    } while (!atomic_load_explicit(&stop, memory_order_relaxed));
    return arg;
}
int main(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    pthread_t a = start(works, NULL), b = start(works, NULL);
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    while (atomic_load(&handled) < 300) {}
    setitimer(ITIMER_REAL, &never, NULL);
    atomic_store(&stop, 1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return data == 0;
}

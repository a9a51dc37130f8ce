#include "corpus.h"
#include <stdatomic.h>
#include <sys/wait.h>
// A child has a copy of the memory: what the parent's threads did to it before is over, though nothing ordered it with the
// thread that forks. What threads do after that in the parent still races.
int running, ended, x;
static atomic_int done;
static int never[2];
static void *keeps_running(void *arg) {
    char c;
    running = 1;
    atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
    if (read(never[0], &c, 1) == 1) return NULL;
    x++; // race(x)
    return arg;
}
static void *ends(void *arg) {
    ended = 1;
    atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
    return arg;
}
static void *in_child(void *arg) {
    running++;
    ended++;
    return arg;
}
int main(void) {
    if (pipe(never) != 0) return 1;
    pthread_t a = start(keeps_running, NULL), b = start(ends, NULL);
    while (atomic_load_explicit(&done, memory_order_relaxed) < 2) usleep(100);
    pid_t child = fork();
    if (child == 0) {
        running++;
        ended++;
        pthread_join(start(in_child, NULL), NULL);
        _exit(running != 3 || ended != 3);
    }
    int status;
    waitpid(child, &status, 0);
    pthread_join(b, NULL);
    close(never[1]);
#ifdef FIXED
    pthread_join(a, NULL);
    x++;
#else
    x++; // race(x)
    pthread_join(a, NULL);
#endif
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

// Two ways to crash, each under some schedules only. What is used may not be there yet: in the function
// itself, and in a function of the C library that is called with it. With an argument the program has a
// handler for the crash, and says so.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(int *) cell;
static _Atomic(char *) text;
static int value = 7;

static void *use(void *arg) {
    int *p = atomic_load(&cell);
#ifdef FIXED
    if (!p) return arg;
#endif
    *p += 1;
    char *t = atomic_load(&text);
#ifdef FIXED
    if (!t) return arg;
#endif
    *p = (int)strlen(t);
    return arg;
}

static void *make(void *arg) {
    atomic_store(&cell, &value);
    atomic_store(&text, "hello");
    return arg;
}

static void on_crash(int signal) {
    (void)signal;
    exit(0);
}

int main(int argc, char **argv) {
    (void)argv;
    struct sigaction old;
    sigaction(SIGSEGV, NULL, &old);
    if (old.sa_handler != SIG_DFL) return 2;
    if (argc > 1) signal(SIGSEGV, on_crash);
    pthread_t maker, user;
    pthread_create(&maker, NULL, make, NULL);
    pthread_create(&user, NULL, use, NULL);
    pthread_join(maker, NULL);
    pthread_join(user, NULL);
    return 0;
}

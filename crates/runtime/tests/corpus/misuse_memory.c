#include "corpus.h"
#include <signal.h>
#include <stdatomic.h>
// Memory that its own thread uses after it has freed it, in the same breath and later, and frees twice. The C library
// ends a program that frees twice.
static void ends(int signal) {
    (void)signal;
    _exit(0);
}
static void *reads(void *arg) {
    volatile int *p = arg;
    return (void *)(long)p[3]; // race(read)
}
int main(void) {
    volatile int *fresh = malloc(64), *old = malloc(64);
    atomic_int *counter = malloc(sizeof *counter);
    char *volatile twice = malloc(64);
    fresh[1] = 1;
    old[3] = 1;
    atomic_init(counter, 0);
#ifdef FIXED
    fresh[2] = 2;
    atomic_fetch_add(counter, 1);
    pthread_join(start(reads, (void *)old), NULL);
    free((void *)fresh);
    free(counter);
    free((void *)old);
#else
    free((void *)fresh); // race(write)
    fresh[2] = 2; // race(write)
    free(counter); // race(atomic)
    atomic_fetch_add(counter, 1); // race(atomic)
    free((void *)old); // race(read)
    pthread_join(start(reads, (void *)old), NULL);
#endif
    // The same memory again is another block.
    for (int i = 0; i < 100; i++) {
        volatile int *p = malloc(64);
        p[2] = i;
        free((void *)p);
    }
    free(twice); // race(twice)
#ifndef FIXED
    signal(SIGABRT, ends);
    free(twice); // race(twice)
#endif
    return 0;
}

// Shared by the corpus. Every program is a pair: as it stands it has the races whose lines carry a
// `race(name)` comment, and no others; with -DFIXED it has none.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *(*body)(void *);

static inline pthread_t start(body f, void *arg) {
    pthread_t t;
    if (pthread_create(&t, NULL, f, arg) != 0) abort();
    return t;
}

static inline void both(body f, body g) {
    pthread_t a = start(f, NULL), b = start(g, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

// Two threads, each running work(id); the result is printed so that nothing is optimised away.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 2

static void *work(void *id);

static int scale(int argc, char **argv, int usual) { return argc > 1 ? atoi(argv[1]) : usual; }

static void run_threads(void) {
    pthread_t t[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
}

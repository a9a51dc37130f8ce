/* Ends as its argument says, if the other thread came first. Running freely it does, because the main thread
   is slow; under control both orders happen. The fixed twin waits for no order. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int first;
static int *nothing;

static void *other(void *arg) {
    pthread_mutex_lock(&m);
    first = 1;
    pthread_mutex_unlock(&m);
    return arg;
}

__attribute__((noinline)) static int reads(const int *at) { return *at; } /* null */

static void dies(const char *how) {
    if (strcmp(how, "null") == 0) exit(reads(nothing));
    if (strcmp(how, "abort") == 0) abort(); /* abort */
    assert(strcmp(how, "assert") != 0); /* assert */
}

int main(int count, char **words) {
    pthread_t t;
    pthread_create(&t, NULL, other, NULL);
    for (long i = 0; i < 20000000; i++) __asm__ volatile("");
    pthread_mutex_lock(&m);
    int came = first;
    pthread_mutex_unlock(&m);
#ifndef FIXED
    if (came && count > 1) dies(words[1]);
#else
    (void)came, (void)dies, (void)count, (void)words;
#endif
    pthread_join(t, NULL);
    return 0;
}

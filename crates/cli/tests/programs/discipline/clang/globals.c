/* Variables with static storage: one whose lock is declared before it, one whose lock comes after it, one that
   an array of functions could not say better. The twin reads one without its lock when asked for help. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long hits;
static long table[4][2];

int misses; /* of both threads
               together */
static pthread_mutex_t misses_lock = PTHREAD_MUTEX_INITIALIZER;

static int errors = 0;
static pthread_mutex_t errors_lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        hits++;
        table[i % 4][i % 2] += i;
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&misses_lock);
        misses += i % 2;
        pthread_mutex_unlock(&misses_lock);
        pthread_mutex_lock(&errors_lock);
        errors += i > 8;
        pthread_mutex_unlock(&errors_lock);
    }
    return unused;
}

static void help(void) {
#ifdef PLANTED
    printf("usage: globals (%ld hits)\n", hits); /* planted */
#else
    pthread_mutex_lock(&lock);
    printf("usage: globals (%ld hits)\n", hits);
    pthread_mutex_unlock(&lock);
#endif
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    (void)argv;
    hits = 1;
    misses = -1;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    if (argc > 1)
        help();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return hits + misses + errors < 0;
}

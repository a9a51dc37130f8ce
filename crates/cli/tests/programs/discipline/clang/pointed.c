/* A lock on the heap that a variable points to and that is freed at the end, and records on the heap that are copied
   as a whole. Two functions take another lock, which guards nothing, in ways that clang does not like. The twin writes
   without the lock when asked for help. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct record {
    long key;
    int count;
    char flag;
    long when;
};

static pthread_mutex_t *lock;
static long hits;
static struct record *records;
static struct record blank;
static pthread_mutex_t unused = PTHREAD_MUTEX_INITIALIZER;

static void take(pthread_mutex_t *which) {
    if (pthread_mutex_lock(which) != 0)
        exit(1);
}

static void enter(int really) {
    if (really)
        pthread_mutex_lock(&unused);
}

static void leave(int really) {
    if (really)
        pthread_mutex_unlock(&unused);
}

static void *work(void *argument) {
    for (int i = 0; i < 6; i++) {
        enter(i % 2);
        leave(i % 2);
        pthread_mutex_lock(lock);
        hits++;
        struct record *mine = &records[i];
        *mine = blank;
        pthread_mutex_unlock(lock);
        pthread_mutex_lock(lock);
        mine->key = i;
        mine->count += 1;
        pthread_mutex_unlock(lock);
    }
    return argument;
}

static void help(void) {
#ifdef PLANTED
    hits = 0; /* planted */
#else
    pthread_mutex_lock(lock);
    hits = 0;
    pthread_mutex_unlock(lock);
#endif
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    (void)argv;
    lock = malloc(sizeof *lock);
    pthread_mutex_init(lock, 0);
    records = malloc(6 * sizeof *records);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    if (argc > 1) {
        take(&unused);
        help();
        pthread_mutex_unlock(&unused);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    pthread_mutex_destroy(lock);
    free(lock);
    free(records);
    return 0;
}

/* A cache under a reader-writer lock: readers share it, functions rely on their callers in both modes, and wrappers
   lock in both. The twin writes while it only reads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

enum { SIZE = 8 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int cache[SIZE];
static int filled;

static void reading(void) { pthread_rwlock_rdlock(&lock); }
static void writing(void) { pthread_rwlock_wrlock(&lock); }
static void done(void) { pthread_rwlock_unlock(&lock); }

/* The caller reads at least. */
static int find(int key) {
    for (int i = 0; i < filled; i++)
        if (cache[i] == key)
            return i;
    return -1;
}

/* The caller writes. */
static void put(int key) {
    if (find(key) < 0 && filled < SIZE)
        cache[filled++] = key;
}

static void *work(void *unused) {
    for (int i = 0; i < SIZE; i++) {
        reading();
        int at = find(i);
        if (at > SIZE)
#ifdef PLANTED
            filled = 0; /* planted */
#else
            at = 0;
#endif
        done();
        if (at < 0) {
            writing();
            put(i);
            done();
        }
    }
    return unused;
}

int main(void) {
    pthread_t threads[3];
    memset(cache, 0, sizeof cache);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return filled != SIZE;
}

// Shape: upgrade of a reader-writer lock. Two readers that want to write wait for each other to leave.
// Idea: the upgrade deadlock, known from databases, for which POSIX has no upgrade at all; so the lock
// is the program's own.
// Shows: a hang, if both have begun to read when the first one upgrades.
// Fixed: looks and writes alone from the start.
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int filled;

#ifdef FIXED
static void *refresh(void *arg) {
    pthread_mutex_lock(&lock);
    if (!filled) filled = 1;
    pthread_mutex_unlock(&lock);
    return arg;
}
#else
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static int readers, upgrading;

// Begins to read; whether there is nothing to be read yet.
static int begin_read(void) {
    pthread_mutex_lock(&lock);
    while (upgrading) pthread_cond_wait(&left, &lock);
    readers++;
    int missing = !filled;
    pthread_mutex_unlock(&lock);
    return missing;
}

static void end_read(void) {
    pthread_mutex_lock(&lock);
    readers--;
    pthread_cond_broadcast(&left);
    pthread_mutex_unlock(&lock);
}

// Keeps reading, and waits until no other thread does.
static void upgrade(void) {
    pthread_mutex_lock(&lock);
    upgrading = 1;
    while (readers > 1) pthread_cond_wait(&left, &lock);
    filled = 1;
    upgrading = 0;
    pthread_cond_broadcast(&left);
    pthread_mutex_unlock(&lock);
}

static void *refresh(void *arg) {
    if (begin_read()) upgrade();
    end_read();
    return arg;
}
#endif

static void *look(void *arg) {
    pthread_mutex_lock(&lock);
    assert(filled == 0 || filled == 1);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t a = start(refresh, NULL);
    join(start(look, NULL));
    pthread_t b = start(refresh, NULL);
    join(a);
    join(b);
    return filled ? 0 : 1;
}

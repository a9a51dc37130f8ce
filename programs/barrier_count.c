// Shape: barrier with the wrong count. Members register for a round; one that has seen that registration
// is open may be counted too late, and still comes to the barrier.
// Idea: counts of barriers and latches that are read before all members have been counted.
// Shows: a hang, if the round is closed between a member's look and its registration.
// Fixed: look and registration, and closing and counting, are under a lock.
#include "shape.h"
#include <stdatomic.h>

enum { MEMBERS = 2 };
static pthread_barrier_t barrier;
static atomic_int closed, members;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static int ready;

static int enrol(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    int open = !atomic_load(&closed);
    if (open) atomic_fetch_add(&members, 1);
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return open;
}

static void *member(void *arg) {
    if (!enrol()) return arg;
    pthread_mutex_lock(&lock);
    while (!ready) pthread_cond_wait(&begun, &lock);
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void begin(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
    atomic_store(&closed, 1);
    int count = atomic_load(&members);
    pthread_mutex_unlock(&lock);
#else
    atomic_store(&closed, 1);
    int count = atomic_load(&members);
#endif
    pthread_barrier_init(&barrier, NULL, count + 1);
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_broadcast(&begun);
    pthread_mutex_unlock(&lock);
}

int main(void) {
    pthread_t threads[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) threads[i] = start(member, NULL);
    work(200);
    begin();
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < MEMBERS; i++) join(threads[i]);
    return 0;
}

// Shape: time of check, time of use. A lock is tried only to learn that it is free, then released, and what
// it guards is used.
// Idea: "is it busy?" questions whose answer is outdated when it arrives.
// Shows: the assertion, if the owner comes between question and use.
// Fixed: keeps the lock that it got.
#include "shape.h"
#include <stdatomic.h>

static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
static atomic_int users;

static void use(void) {
    assert(atomic_fetch_add(&users, 1) == 0);
    atomic_fetch_sub(&users, 1);
}

static void *poll_device(void *arg) {
    if (pthread_mutex_trylock(&device) == 0) {
#ifdef FIXED
        use();
        pthread_mutex_unlock(&device);
#else
        pthread_mutex_unlock(&device);
        use();
#endif
    }
    return arg;
}

static void *own_device(void *arg) {
    pthread_mutex_lock(&device);
    use();
    pthread_mutex_unlock(&device);
    return arg;
}

int main(void) {
    pthread_t poller = start(poll_device, NULL), owner = start(own_device, NULL);
    join(poller);
    join(owner);
    return 0;
}

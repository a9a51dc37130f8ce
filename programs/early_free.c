// Shape: use after free. A reference is counted after the lock that protects the way to the object has
// been given up.
// Idea: lookup and release of reference-counted objects, as in many kernel bugs of that kind.
// Shows: the assertion (the object was wiped), if the last reference is dropped between lookup and count.
// Fixed: counts with the lock held.
#include "shape.h"
#include <stdatomic.h>

enum { ALIVE = 0x600d, WIPED = 0xdead };
struct object {
    atomic_int references, state;
};

static struct object *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void release(struct object *o) {
    // Wiped and not freed, so that a use is an assertion on every machine.
    if (atomic_fetch_sub(&o->references, 1) == 1) atomic_store(&o->state, WIPED);
}

static struct object *look_up(void) {
    pthread_mutex_lock(&lock);
    struct object *o = shared;
#ifdef FIXED
    if (o) atomic_fetch_add(&o->references, 1);
#endif
    pthread_mutex_unlock(&lock);
#ifndef FIXED
    if (o) atomic_fetch_add(&o->references, 1);
#endif
    return o;
}

static void *use(void *arg) {
    struct object *o = look_up();
    if (o) {
        assert(atomic_load(&o->state) == ALIVE);
        release(o);
    }
    return arg;
}

static void *retire(void *arg) {
    pthread_mutex_lock(&lock);
    struct object *o = shared;
    shared = NULL;
    pthread_mutex_unlock(&lock);
    release(o);
    return arg;
}

int main(void) {
    static struct object object;
    atomic_store(&object.references, 1);
    atomic_store(&object.state, ALIVE);
    shared = &object;
    pthread_t user = start(use, NULL), owner = start(retire, NULL);
    join(user);
    join(owner);
    return 0;
}

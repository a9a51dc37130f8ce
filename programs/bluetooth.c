// Shape: stop while starting. A driver counts the requests under way and is unloaded when none is left;
// a request that has seen "not stopping" may not have been counted yet.
// Idea: the Bluetooth driver of KISS (Qadeer and Wu, PLDI 2004).
// Shows: the assertion, if the driver stops between the request's check and its count.
// Fixed: counts first and then checks.
#include "shape.h"
#include <stdatomic.h>

static atomic_int stopping, stopped, pending = 1;

static void finish_one(void) {
    if (atomic_fetch_sub(&pending, 1) == 1) atomic_store(&stopped, 1);
}

static void *request(void *arg) {
#ifdef FIXED
    atomic_fetch_add(&pending, 1);
    if (atomic_load(&stopping)) {
        finish_one();
        return arg;
    }
#else
    if (atomic_load(&stopping)) return arg;
    atomic_fetch_add(&pending, 1);
#endif
    assert(!atomic_load(&stopped));
    finish_one();
    return arg;
}

static void *stop(void *arg) {
    atomic_store(&stopping, 1);
    finish_one();
    return arg;
}

int main(void) {
    pthread_t a = start(request, NULL), b = start(stop, NULL);
    join(a);
    join(b);
    return 0;
}

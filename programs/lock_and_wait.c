// Shape: deadlock of a lock and a condition variable. The waiter keeps an outer lock that the thread that
// would notify it needs first.
// Idea: nested monitors (Lister, 1977).
// Shows: a hang, if the item that the consumer has seen is gone when it comes to take it, and the
// producer has not put the next one yet.
// Fixed: lets go of the outer lock before it waits.
#include "shape.h"

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items = 1, served;

static int available(void) {
    pthread_mutex_lock(&inner);
    int some = items > 0;
    pthread_mutex_unlock(&inner);
    return some;
}

static void *consume(void *arg) {
    pthread_mutex_lock(&outer);
    int some = available();
    served += some;
#ifdef FIXED
    pthread_mutex_unlock(&outer);
#endif
    if (some) {
        pthread_mutex_lock(&inner);
        while (items == 0) pthread_cond_wait(&filled, &inner);
        items--;
        pthread_mutex_unlock(&inner);
    }
#ifndef FIXED
    pthread_mutex_unlock(&outer);
#endif
    return arg;
}

static void *steal(void *arg) {
    pthread_mutex_lock(&inner);
    if (items > 0) items--;
    pthread_mutex_unlock(&inner);
    return arg;
}

static void *produce(void *arg) {
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    items++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    return arg;
}

int main(void) {
    pthread_t consumer = start(consume, NULL), thief = start(steal, NULL);
    pthread_t producer = start(produce, NULL);
    join(consumer);
    join(thief);
    join(producer);
    return items >= 0 ? 0 : 1;
}

// Shape: missed notification, `if` where `while` is needed. A woken consumer takes for granted that
// the item is still there.
// Idea: Mesa monitors (Lampson and Redell, 1980) need the loop; its absence is a classic.
// Shows: the assertion, if a second consumer takes the item between notification and wake-up.
// Fixed: looks again after waking up.
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;

static void *produce(void *arg) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        items++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *consume(void *arg) {
    work(20);
    pthread_mutex_lock(&lock);
#ifdef FIXED
    while (items == 0) pthread_cond_wait(&filled, &lock);
#else
    if (items == 0) pthread_cond_wait(&filled, &lock);
#endif
    assert(items > 0);
    items--;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t producer = start(produce, NULL);
    work(100);
    pthread_t first = start(consume, NULL), second = start(consume, NULL);
    join(producer);
    join(first);
    join(second);
    return 0;
}

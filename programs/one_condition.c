// Shape: bounded buffer with one condition variable for two purposes. A notification meant for a
// producer wakes a consumer, which goes back to sleep with it.
// Idea: the bounded buffer that explains why `notifyAll` is needed; a benchmark of many schedule testers.
// Shows: a hang, if a producer and a consumer wait at the same time and the wrong one is woken.
// Fixed: two condition variables.
#include "shape.h"

enum { SIZE = 1, PAIRS = 2 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
#ifdef FIXED
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
#else
#define not_full not_empty
#endif
static int count;

static void *produce(void *arg) {
    pthread_mutex_lock(&lock);
    while (count == SIZE) pthread_cond_wait(&not_full, &lock);
    count++;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *consume(void *arg) {
    pthread_mutex_lock(&lock);
    while (count == 0) pthread_cond_wait(&not_empty, &lock);
    count--;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t producers[PAIRS], consumers[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        producers[i] = start(produce, NULL);
        work(300);
        consumers[i] = start(consume, NULL);
        work(300);
    }
    for (int i = 0; i < PAIRS; i++) {
        join(producers[i]);
        join(consumers[i]);
    }
    return count;
}

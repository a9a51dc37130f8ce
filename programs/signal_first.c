// Shape: a condition variable that is signalled before it is awaited, behind a counter.
// Sizes: 3 10 20 50 100
// Idea: a latch as many programs write it by hand; the order violations with condition variables of Lu, Park,
// Seo and Zhou (ASPLOS 2008).
// Shows: a hang, if the last worker counts itself between the look of the waiter and its wait.
// Fixed: looks with the lock held, again after each wake-up.
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int workers, finished;

static void *labour(void *arg) {
    work(20);
    pthread_mutex_lock(&lock);
    if (++finished == workers) pthread_cond_signal(&all_done);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *await(void *arg) {
    pthread_mutex_lock(&lock);
#ifdef FIXED
    while (finished < workers) pthread_cond_wait(&all_done, &lock);
#else
    int seen = finished;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    if (seen < workers) pthread_cond_wait(&all_done, &lock);
#endif
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    workers = size(argc, argv, 2);
    pthread_t waiter = start(await, NULL);
    for (int i = 0; i < workers; i++) threads[i] = start(labour, NULL);
    for (int i = 0; i < workers; i++) join(threads[i]);
    join(waiter);
    return 0;
}

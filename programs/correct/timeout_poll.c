// Correct: a thread waits for a condition with a timeout and looks again, so that no wake-up can be lost.
#include "../shape.h"
#include <errno.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int items;

static void *consume(void *arg) {
    pthread_mutex_lock(&lock);
    while (items == 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        int outcome = pthread_cond_timedwait(&changed, &lock, &until);
        assert(outcome == 0 || outcome == ETIMEDOUT);
    }
    items--;
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *produce(void *arg) {
    // Outside of the lock: whoever misses it looks again after its timeout.
    pthread_mutex_lock(&lock);
    items += 2;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&changed);
    return arg;
}

int main(void) {
    pthread_t consumers[2] = {start(consume, NULL), start(consume, NULL)};
    pthread_t producer = start(produce, NULL);
    join(producer);
    join(consumers[0]);
    join(consumers[1]);
    assert(items == 0);
    return 0;
}

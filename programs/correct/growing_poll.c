// Correct: a thread looks under a lock, with a pause that grows from look to look.
#include "../shape.h"
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready;

static int look(void) {
    pthread_mutex_lock(&lock);
    int seen = ready;
    pthread_mutex_unlock(&lock);
    return seen;
}

static void *wait_for_it(void *arg) {
    for (long pause = 1000; !look(); pause = pause < 1000000 ? 2 * pause : pause) {
        const struct timespec time = {0, pause};
        nanosleep(&time, NULL);
    }
    return arg;
}

static void *end_it(void *arg) {
    work(20);
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t waiting[2] = {start(wait_for_it, NULL), start(wait_for_it, NULL)};
    pthread_t ending = start(end_it, NULL);
    join(ending);
    join(waiting[0]);
    join(waiting[1]);
    return 0;
}

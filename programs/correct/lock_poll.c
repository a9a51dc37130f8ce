// Correct: a thread looks for a result under a lock, again and again, and never gives way by itself.
#include "../shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready, result;

static void *produce(void *arg) {
    work(20);
    pthread_mutex_lock(&lock);
    result = 42;
    ready = 1;
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *poll_for_it(void *arg) {
    for (int seen = 0; !seen;) {
        pthread_mutex_lock(&lock);
        seen = ready;
        if (seen) assert(result == 42);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(void) {
    pthread_t pollers[2] = {start(poll_for_it, NULL), start(poll_for_it, NULL)};
    pthread_t producer = start(produce, NULL);
    join(producer);
    join(pollers[0]);
    join(pollers[1]);
    return 0;
}

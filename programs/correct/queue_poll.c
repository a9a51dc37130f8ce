// Correct: consumers poll a queue under a lock until the producer has said that nothing more comes.
#include "../shape.h"
#include <sched.h>

enum { JOBS = 6 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int queue[JOBS], first, last, closed, done;

static void *consume(void *arg) {
    for (;;) {
        pthread_mutex_lock(&lock);
        int job = first < last ? queue[first++] : 0, over = closed && first == last;
        done += job != 0;
        pthread_mutex_unlock(&lock);
        if (job == 0 && over) return arg;
        if (job == 0) sched_yield();
    }
}

static void *produce(void *arg) {
    for (int i = 0; i < JOBS; i++) {
        pthread_mutex_lock(&lock);
        queue[last++] = i + 1;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t consumers[2] = {start(consume, NULL), start(consume, NULL)};
    pthread_t producer = start(produce, NULL);
    join(producer);
    join(consumers[0]);
    join(consumers[1]);
    assert(done == JOBS);
    return 0;
}

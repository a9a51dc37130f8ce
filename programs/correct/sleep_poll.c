// Correct: workers look under a lock whether they are to stop, and sleep between two looks.
#include "../shape.h"
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stop, rounds;

static void *serve(void *arg) {
    const struct timespec pause = {0, 1000000};
    for (;;) {
        pthread_mutex_lock(&lock);
        int over = stop;
        rounds++;
        pthread_mutex_unlock(&lock);
        if (over) return arg;
        nanosleep(&pause, NULL);
    }
}

int main(void) {
    const struct timespec pause = {0, 3000000};
    pthread_t workers[2] = {start(serve, NULL), start(serve, NULL)};
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_mutex_unlock(&lock);
    join(workers[0]);
    join(workers[1]);
    assert(rounds >= 2);
    return 0;
}

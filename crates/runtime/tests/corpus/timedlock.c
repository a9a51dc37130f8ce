#include "corpus.h"
#include <errno.h>
#include <time.h>
int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *arg) {
    struct timespec past = {0, 0}, later;
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 600;
#ifdef FIXED
    if (pthread_mutex_timedlock(&m, &later) != 0) abort();
    x++;
    pthread_mutex_unlock(&m);
    (void)past;
#else
    if (pthread_mutex_timedlock(&m, &past) != ETIMEDOUT) abort();
    x++; // race(x)
#endif
    return arg;
}
int main(void) {
    pthread_mutex_lock(&m);
    pthread_t t = start(f, NULL);
#ifdef FIXED
    x++;
    pthread_mutex_unlock(&m);
    pthread_join(t, NULL);
#else
    x++; // race(x)
    pthread_join(t, NULL);
    pthread_mutex_unlock(&m);
#endif
    return 0;
}

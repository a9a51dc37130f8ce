// A thread waits for a notification that may have come before it waits, unless it looks (FIXED).
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static int parcel;

static void *deliver(void *arg) {
    pthread_mutex_lock(&lock);
    parcel = 1;
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t courier;
    pthread_create(&courier, 0, deliver, 0);
    pthread_mutex_lock(&lock);
#ifdef FIXED
    while (!parcel)
#endif
        pthread_cond_wait(&arrived, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(courier, 0);
    return 0;
}

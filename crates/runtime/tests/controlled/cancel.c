// A thread that waits for ever is cancelled.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void unlock(void *mutex) { pthread_mutex_unlock(mutex); }

static void *wait_for_ever(void *arg) {
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(1);
    return arg;
}

int main(void) {
    pthread_t waiter;
    pthread_create(&waiter, 0, wait_for_ever, 0);
    pthread_cancel(waiter);
    pthread_join(waiter, 0);
    pthread_mutex_lock(&lock);
    return 0;
}

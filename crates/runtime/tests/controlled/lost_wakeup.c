// A waiter that looks at the flag before it takes the lock may miss the only notification.
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static atomic_int flag;

static void *wait_for_it(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
    while (!flag)
        pthread_cond_wait(&ready, &lock);
    pthread_mutex_unlock(&lock);
#else
    if (!flag) {
        pthread_mutex_lock(&lock);
        pthread_cond_wait(&ready, &lock);
        pthread_mutex_unlock(&lock);
    }
#endif
    return arg;
}

int main(void) {
    pthread_t waiter;
    pthread_create(&waiter, 0, wait_for_it, 0);
    pthread_mutex_lock(&lock);
    flag = 1;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    pthread_join(waiter, 0);
    return 0;
}

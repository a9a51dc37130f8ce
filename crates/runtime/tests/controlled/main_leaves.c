// The main thread ends before the other one.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *go_on(void *arg) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t other;
    pthread_create(&other, 0, go_on, 0);
    pthread_detach(other);
    pthread_exit(0);
}

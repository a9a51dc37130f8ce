// Two threads take two locks in opposite order, after some work of their own.
#include <pthread.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t audit = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t work = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void toil(void) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&work);
        done++;
        pthread_mutex_unlock(&work);
    }
}

static void *deposit(void *arg) {
    toil();
    pthread_mutex_lock(&ledger);
    pthread_mutex_lock(&audit);
    pthread_mutex_unlock(&audit);
    pthread_mutex_unlock(&ledger);
    return arg;
}

static void *review(void *arg) {
    toil();
    pthread_mutex_lock(&audit);
    pthread_mutex_lock(&ledger);
    pthread_mutex_unlock(&ledger);
    pthread_mutex_unlock(&audit);
    return arg;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, deposit, 0);
    pthread_create(&two, 0, review, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}

/* The part of mixed.c that is built without data flow. */
#include <pthread.h>

extern int number;
extern pthread_mutex_t lock;

int twice(int value) { return value * 2; }

void *unseen_worker(void *nothing) {
    pthread_mutex_lock(&lock);
    number = number + 5;
    pthread_mutex_unlock(&lock);
    return nothing;
}

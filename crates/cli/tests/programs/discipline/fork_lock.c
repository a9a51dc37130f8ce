/* ForkLock of Hominy Grits, section 5.4.1. */
#include <pthread.h>
#include <stdio.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int field;

static void *work(void *unused) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        field++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    field = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    printf("field is %d, should be 4\n", field);
    return 0;
}

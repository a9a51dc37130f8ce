/* SyncObject of Hominy Grits, section 5.4.1: an object with its own lock. */
#include <pthread.h>
#include <stdlib.h>

struct object {
    pthread_mutex_t lock;
    int i;
};

static void *work(void *argument) {
    struct object *so = argument;
    pthread_mutex_lock(&so->lock);
    so->i++;
    pthread_mutex_unlock(&so->lock);
    return 0;
}

int main(void) {
    pthread_t threads[5];
    struct object *so = calloc(1, sizeof *so);
    pthread_mutex_init(&so->lock, 0);
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], 0, work, so);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], 0);
    return 0;
}

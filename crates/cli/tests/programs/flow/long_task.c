/* Tasks that look at shared memory many times before they change anything: they do not wait for another. */
#include <pthread.h>
#include <stdio.h>

int limit = 400, total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *count(void *nothing) {
    int sum = 0;
    for (int i = 0; i < limit; i++) sum += i;
    pthread_mutex_lock(&lock);
    total = total + sum;
    limit = 400;
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, count, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%d\n", total);
    return 0;
}

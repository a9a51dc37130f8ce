// Two producers and a consumer over a mutex and a condition variable; prints the order of arrival.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static char order[16];
static int count;

static void *produce(void *name) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        order[count++] = *(const char *)name;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, produce, "a");
    pthread_create(&b, 0, produce, "b");
    pthread_mutex_lock(&lock);
    while (count < 6)
        pthread_cond_wait(&filled, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%s\n", order);
    return 7;
}

// Two threads increment a counter, without a lock unless FIXED.
#include <pthread.h>
#include <stdio.h>

static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *increment(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
    counter++;
    pthread_mutex_unlock(&lock);
#else
    counter++;
#endif
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, increment, 0);
    pthread_create(&b, 0, increment, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", counter);
    return counter == 2 ? 0 : 1;
}

/* Two tasks add one to a number. With -DFIXED under a lock: then each execution is as if sequential. */
#include <pthread.h>
#include <stdio.h>

int number;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *nothing) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    int old = number;
    number = old + 1;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return nothing;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, add, 0);
    pthread_create(&b, 0, add, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", number);
    return 0;
}

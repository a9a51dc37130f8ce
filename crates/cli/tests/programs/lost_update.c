// Two threads add to a counter; without a lock an update can be lost.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    counter++;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, add, 0);
    pthread_create(&b, 0, add, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    (void)lock;
    assert(counter == 2);
    printf("%d\n", counter);
    return 0;
}

// An update that is lost, and wrong fixes of it.
// FIX 1: both halves are locked, but each by itself. FIX 2: only one of the threads locks.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int counter;

#if FIX == 1
static int get(void) {
    pthread_mutex_lock(&lock);
    int now = counter;
    pthread_mutex_unlock(&lock);
    return now;
}
#endif

static void *increment(void *arg) {
#if FIX == 1
    int next = get() + 1;
    pthread_mutex_lock(&lock);
    counter = next;
    pthread_mutex_unlock(&lock);
#elif FIX == 2
    if (arg) pthread_mutex_lock(&lock);
    counter++;
    if (arg) pthread_mutex_unlock(&lock);
#elif FIX == 9
    pthread_mutex_lock(&lock);
    counter++;
    pthread_mutex_unlock(&lock);
#else
    (void)lock;
    counter++;
#endif
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, increment, 0);
    pthread_create(&b, 0, increment, &b);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(counter == 2);
    return 0;
}

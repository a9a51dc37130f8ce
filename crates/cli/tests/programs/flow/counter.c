/* Threads take numbers from a counter and count how often each was taken. Which thread takes which does not matter, but
 * threads interleave on the counter. With -DBUG it has no lock, and a number may be taken twice. */
#include <pthread.h>
#include <stdio.h>

#define NUMBERS 4

static int next, taken[NUMBERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int take(void) {
#ifndef BUG
    pthread_mutex_lock(&lock);
#endif
    int number = next;
    next = number + 1;
#ifndef BUG
    pthread_mutex_unlock(&lock);
#endif
    return number;
}

static void *work(void *nothing) {
    for (int number = take(); number < NUMBERS; number = take())
        __atomic_fetch_add(&taken[number], 1, __ATOMIC_RELAXED);
    return nothing;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < NUMBERS; i++) printf("%d ", taken[i]);
    printf("\n");
    return 0;
}

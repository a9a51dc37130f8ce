// Accesses that look like races to somebody who compares lines, and are none: ordered by a join, guarded
// by a lock, at different elements. Nothing of it may ever be confirmed.
#include <pthread.h>
#include <stdio.h>

static int before, guarded, own[2], handed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int is_ready;

static void *first(void *arg) {
    before = 1;
    own[0]++;
    handed = 7;
    pthread_mutex_lock(&lock);
    guarded++;
    is_ready = 1;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *second(void *arg) {
    int which = *(int *)arg;
    own[which]++;
    pthread_mutex_lock(&lock);
    while (!is_ready)
        pthread_cond_wait(&ready, &lock);
    guarded++;
    pthread_mutex_unlock(&lock);
    handed++;
    return arg;
}

int main(void) {
    pthread_t a, b;
    int one = 1;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, &one);
    pthread_join(a, 0);
    before++;
    pthread_join(b, 0);
    printf("%d %d %d %d %d\n", before, guarded, own[0], own[1], handed);
    return 0;
}

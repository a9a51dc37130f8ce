/* One part of a program, built with data flow; the other part, unseen.c, is not. */
#include <pthread.h>
#include <stdio.h>

int number;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int twice(int value);
void *unseen_worker(void *nothing);

static void *work(void *nothing) {
    pthread_mutex_lock(&lock);
    number = twice(number) + 1;
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, work, 0);
    pthread_create(&threads[1], 0, unseen_worker, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%d\n", number);
    return 0;
}

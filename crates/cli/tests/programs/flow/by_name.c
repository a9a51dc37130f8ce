/* Two threads append two numbers each to a list. Each call is a task: any order that keeps that of each thread is
 * sequential. If threads are the tasks, the numbers of one must stand together. With -DSPLIT a call looks where the list
 * ends and appends in two steps: numbers are lost. */
#include <pthread.h>
#include <stdio.h>

static int list[4], length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void append(int number) {
    pthread_mutex_lock(&lock);
    int at = length;
#ifdef SPLIT
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    list[at] = number;
    length = at + 1;
    pthread_mutex_unlock(&lock);
}

static void *work(void *first) {
    append((int)(long)first);
    append((int)(long)first + 1);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)(10 * i + 10));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < length; i++) printf("%d ", list[i]);
    printf("\n");
    return 0;
}

/* ReadShared of Hominy Grits, section 5.4.1. */
#include <pthread.h>
#include <stdio.h>

int constant;

static void *work(void *unused) {
    volatile int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += *(volatile int *)&constant;
    return unused;
}

int main(void) {
    pthread_t threads[3];
    constant = 8;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    constant++;
    printf("constant is %d\n", constant);
    return 0;
}

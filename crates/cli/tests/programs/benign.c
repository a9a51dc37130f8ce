// Both threads write the same value without a lock: a data race that changes nothing.
#include <pthread.h>
#include <stdio.h>

static int seen;

static void *mark(void *arg) {
    seen = 1;
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, mark, 0);
    pthread_create(&b, 0, mark, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", seen);
    return 0;
}

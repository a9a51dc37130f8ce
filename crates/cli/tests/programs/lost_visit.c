/* A lost update that only the output shows. */
#include <pthread.h>
#include <stdio.h>

static int visits;

static void *visit(void *arg) {
    visits += 1;
    return arg;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, visit, 0);
    visits += 1;
    pthread_join(thread, 0);
    printf("visits %d\n", visits);
    return 0;
}

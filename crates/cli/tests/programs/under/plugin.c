#include <pthread.h>
int shared;
static void *works(void *arg) {
    shared++;
    return arg;
}
int plugin(void) {
    pthread_t a, b;
    pthread_create(&a, 0, works, 0);
    pthread_create(&b, 0, works, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 5;
}

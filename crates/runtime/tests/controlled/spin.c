// Waits for another thread by looking at a flag again and again.
#include <pthread.h>
#include <stdatomic.h>

static atomic_int flag;

static void *set(void *arg) {
    flag = 1;
    return arg;
}

int main(void) {
    pthread_t other;
    pthread_create(&other, 0, set, 0);
    while (!atomic_load(&flag)) {
    }
    pthread_join(other, 0);
    return 0;
}

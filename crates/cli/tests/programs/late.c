// A thread that races after main has returned: it is seen only if the end of main waits for it. A second thread waits
// for ever, and is not waited for.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
int shared;
static sem_t never;
static void *late(void *arg) {
    usleep(100000);
    shared = 1; /* late */
    return arg;
}
static void *waits(void *arg) {
    sem_wait(&never);
    return arg;
}
int main(void) {
    pthread_t t;
    sem_init(&never, 0, 0);
    pthread_create(&t, NULL, waits, NULL);
    pthread_detach(t);
    pthread_create(&t, NULL, late, NULL);
    pthread_detach(t);
    shared = 2; /* main */
    return 0;
}

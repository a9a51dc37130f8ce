// A signal handler posts the semaphore that its thread waits for.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static sem_t posted;
static pthread_t waiter;

static void on_signal(int number) {
    (void)number;
    sem_post(&posted);
}

static void *notify(void *arg) {
    pthread_kill(waiter, SIGUSR1);
    return arg;
}

int main(void) {
    pthread_t other;
    sem_init(&posted, 0, 0);
    waiter = pthread_self();
    signal(SIGUSR1, on_signal);
    pthread_create(&other, 0, notify, 0);
    sem_wait(&posted);
    pthread_join(other, 0);
    return 0;
}

#include "corpus.h"
#include <semaphore.h>
int data;
static sem_t s;
static void *producer(void *arg) {
    data = 1; // race(data)
    sem_post(&s);
    return arg;
}
static void *consumer(void *arg) {
#ifdef FIXED
    sem_wait(&s);
#endif
    data = 2; // race(data)
    return arg;
}
int main(void) { sem_init(&s, 0, 0); both(producer, consumer); sem_destroy(&s); return 0; }

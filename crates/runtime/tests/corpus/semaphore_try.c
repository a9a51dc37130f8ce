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
    while (sem_trywait(&s) != 0) sched_yield();
#else
    sem_t empty;
    sem_init(&empty, 0, 0);
    if (sem_trywait(&empty) == 0) abort();
#endif
    data = 2; // race(data)
    return arg;
}
int main(void) { sem_init(&s, 0, 0); both(producer, consumer); return 0; }

#include "corpus.h"
#include <semaphore.h>
int x;
static sem_t done;
static void *f(void *arg) {
#ifdef FIXED
    x = 1;
    sem_post(&done);
#else
    sem_post(&done);
    x = 1; // race(x)
    sem_post(&done);
#endif
    return arg;
}
int main(void) {
    sem_init(&done, 0, 0);
    pthread_t t = start(f, NULL);
    pthread_detach(t);
#ifdef FIXED
    sem_wait(&done);
    return x != 1;
#else
    int seen = x; // race(x)
    sem_wait(&done);
    sem_wait(&done);
    return seen > 1;
#endif
}

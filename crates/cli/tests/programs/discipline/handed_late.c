/* A thread writes again and again, and hands over before the last time and after it. The other thread acquires what was
   handed over first last: that does not order the last write. */
#include <pthread.h>
#include <semaphore.h>

int shared;
static sem_t early, late;

static void *user(void *unused) {
    sem_wait(&late);
    sem_wait(&early);
    shared = 100;
    return unused;
}

int main(void) {
    pthread_t thread;
    sem_init(&early, 0, 0);
    sem_init(&late, 0, 0);
    pthread_create(&thread, 0, user, 0);
    for (int i = 0; i < 3; i++) {
        shared = i;
        if (i == 1)
            sem_post(&early);
    }
    sem_post(&late);
    pthread_join(thread, 0);
    return shared != 100;
}

// Five small programs that fail under some schedules only; the argument chooses one.
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static sem_t ready;
static int which, balance, seen[2];

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void add(void) {
    pthread_mutex_lock(&a);
    int now = balance;
    pthread_mutex_unlock(&a);
    pthread_mutex_lock(&a);
    balance = now + 1;
    pthread_mutex_unlock(&a);
}

static void *other(void *arg) {
    switch (which) {
    case 0: both(&b, &a); break;           // a deadlock
    case 1: add(); break;                  // a lost update
    case 2:                                // a lost wake-up
        pthread_mutex_lock(&a);
        pthread_cond_wait(&news, &a);
        pthread_mutex_unlock(&a);
        break;
    case 3: seen[0] = sem_trywait(&ready) == 0; break; // what comes first?
    case 4: pthread_mutex_lock(&b); exit(1);           // the program ends before main is done
    }
    return arg;
}

int main(int argc, char **argv) {
    which = argc > 1 ? atoi(argv[1]) : 0;
    sem_init(&ready, 0, 0);
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    switch (which) {
    case 0: both(&a, &b); break;
    case 1: add(); break;
    case 2:
        pthread_mutex_lock(&a);
        pthread_cond_signal(&news);
        pthread_mutex_unlock(&a);
        break;
    case 3: sem_post(&ready); break;
    case 4:
        pthread_mutex_lock(&a);
        pthread_mutex_unlock(&a);
        exit(0);
    }
    pthread_join(thread, 0);
    if (which == 1) assert(balance == 2);
    if (which == 3) assert(seen[0]);
    return 0;
}

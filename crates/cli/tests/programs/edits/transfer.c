// EDIT: above
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t from = PTHREAD_MUTEX_INITIALIZER, to = PTHREAD_MUTEX_INITIALIZER;
static atomic_int order;
static int balance = 100;

// EDIT: function

static void note(int who) {
    atomic_store(&order, atomic_load(&order) * 4 + who);
}

static void *pay(void *arg) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&from);
        note(1);
        pthread_mutex_lock(&to);
        balance--;
        pthread_mutex_unlock(&to);
        pthread_mutex_unlock(&from);
    }
    return arg;
}

static void *receive(void *arg) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&to);
        note(2);
        pthread_mutex_unlock(&to);
        pthread_mutex_lock(&from);
        note(3);
        balance++;
        pthread_mutex_unlock(&from);
    }
    return arg;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, pay, 0);
    pthread_create(&two, 0, receive, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    printf("%x\n", atomic_load(&order));
    return 0;
}

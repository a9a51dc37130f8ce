// Each half of `withdraw` is locked, the whole of it is not.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long balance = 100;

static long get(void) {
    pthread_mutex_lock(&lock);
    long now = balance;
    pthread_mutex_unlock(&lock);
    return now;
}

static void set(long now) {
    pthread_mutex_lock(&lock);
    balance = now;
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void withdraw(long amount) {
    long now = get();
    if (now >= amount) {
        set(now - amount);
    }
}

static void *customer(void *argument) {
    withdraw(60);
    return argument;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, customer, NULL);
    pthread_create(&two, NULL, customer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}

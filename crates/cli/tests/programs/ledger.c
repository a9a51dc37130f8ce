// The clerk holds the book while it counts what is in the vault and while it writes back the sum, but gives
// the vault's own lock up in between. With -DFIXED it keeps it. Nothing is marked: that code under the book's
// lock is meant to be atomic is a guess.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t book = PTHREAD_MUTEX_INITIALIZER, vault = PTHREAD_MUTEX_INITIALIZER;
static int gold = 10;

static void *clerk(void *arg) {
    pthread_mutex_lock(&book);
    pthread_mutex_lock(&vault);
    int counted = gold;
#ifndef FIXED
    pthread_mutex_unlock(&vault);
    pthread_mutex_lock(&vault);
#endif
    gold = counted + 1;
    pthread_mutex_unlock(&vault);
    pthread_mutex_unlock(&book);
    return arg;
}

static void *robber(void *arg) {
    pthread_mutex_lock(&vault);
    gold--;
    pthread_mutex_unlock(&vault);
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, clerk, NULL);
    pthread_create(&b, NULL, robber, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d\n", gold);
    return 0;
}

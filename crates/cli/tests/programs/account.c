// A data race whose order is the same in every run: main waits until the teller is done, by means that
// do not order the two and that the tool is told to ignore.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <selvedge.h>
#include <stdio.h>
#include <stdlib.h>

struct account {
    long number;
    long balance;
};

long total;
static struct account *account;
static pthread_mutex_t vault = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;

static __attribute__((noinline)) void deposit(long amount) {
    pthread_mutex_lock(&vault);
    total += amount;
    account->balance += amount;
    pthread_mutex_unlock(&vault);
}

static void *teller(void *amount) {
    pthread_setname_np(pthread_self(), "teller");
    deposit((long)amount);
    SELVEDGE_IGNORE_BEGIN();
    done = 1;
    SELVEDGE_IGNORE_END();
    return NULL;
}

int main(void) {
    pthread_t thread;
    account = calloc(1, sizeof *account);
    pthread_create(&thread, NULL, teller, (void *)5L);
    SELVEDGE_IGNORE_BEGIN();
    while (!done)
        sched_yield();
    SELVEDGE_IGNORE_END();
#ifdef FIXED
    pthread_join(thread, NULL);
#endif
    pthread_mutex_lock(&door);
    printf("%ld ", total);
    pthread_mutex_unlock(&door);
    printf("%ld\n", account->balance);
#ifndef FIXED
    pthread_join(thread, NULL);
#endif
    free(account);
    return 0;
}

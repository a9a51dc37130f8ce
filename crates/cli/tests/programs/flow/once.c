/* Two tables that whoever needs one first makes. One thread may make the first and use the second, the other the second
 * and the first. With -DFLOWS what is made depends on who makes it. */
#include <pthread.h>
#include <stdio.h>

static pthread_once_t made[2] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};
static int table[2], result[2];
#ifdef FLOWS
static __thread int self;
#endif

static void make_first(void) {
    table[0] = 10;
#ifdef FLOWS
    table[0] += self;
#endif
}

static void make_second(void) {
    table[1] = 20;
#ifdef FLOWS
    table[1] += self;
#endif
}

static int first(void) {
    pthread_once(&made[0], make_first);
    return table[0];
}

static int second(void) {
    pthread_once(&made[1], make_second);
    return table[1];
}

static void *work(void *argument) {
    long who = (long)argument;
#ifdef FLOWS
    self = 1 + (int)who;
#endif
    int sum = who ? second() : first();
    result[who] = sum + (who ? first() : second());
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%d %d\n", result[0], result[1]);
    return 0;
}

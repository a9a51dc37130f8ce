/* Two threads add to two numbers, each in another order: no order of threads keeps the order of all additions, and it does
 * not matter. With -DDECLARED the program says so, because it cannot be seen. With -DOWN_LOCKS each has a lock of its own, and additions are lost. */
#include <pthread.h>
#include <selvedge.h>
#include <stdio.h>

#ifdef FLOATS
typedef double number;
#else
typedef long number;
#endif

static number one, two;
static pthread_mutex_t lock[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void add(number *to, number what, long who) {
#if defined ATOMIC
    __atomic_fetch_add(to, what, __ATOMIC_RELAXED);
#elif defined ASSEMBLY
    __asm__ __volatile__("lock; addq %1, %0" : "+m"(*to) : "r"(what) : "memory", "cc");
#else
#ifndef OWN_LOCKS
    who = 0;
#endif
    pthread_mutex_lock(&lock[who]);
#ifdef DECLARED
    SELVEDGE_COMMUTES_BEGIN("addition");
    number old = *to;
    *to = old > 100 ? old : old + what;
    SELVEDGE_REGION_END();
#else
    *to += what;
#endif
    pthread_mutex_unlock(&lock[who]);
#endif
    (void)who;
}

static void *work(void *argument) {
    long who = (long)argument;
    for (int i = 0; i < 2; i++) {
        add(who ? &two : &one, 1 + who, who);
        add(who ? &one : &two, 3, who);
    }
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld %ld\n", (long)one, (long)two);
    return 0;
}

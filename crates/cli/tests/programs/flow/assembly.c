/* A sum whose threads compare and exchange in assembly, and the tickets that they draw. With -DWRONG the exchange is no
 * step; with -DOPAQUE there is assembly that is not understood. */
#include <pthread.h>
#include <selvedge.h>
#include <stdio.h>

static long sum, tickets;

static long load(const long *from) {
    long value;
    __asm__ __volatile__("movq %1, %0" : "=r"(value) : "m"(*from) : "memory");
    return value;
}

static int exchange(long *at, long old, long new) {
    char done;
#ifdef WRONG
    done = load(at) == old;
    if (done) __asm__ __volatile__("movq %1, %0" : "=m"(*at) : "r"(new) : "memory");
#else
    __asm__ __volatile__("lock; cmpxchgq %3, %0; sete %1"
                         : "+m"(*at), "=q"(done), "+a"(old)
                         : "r"(new)
                         : "memory", "cc");
#endif
    return done;
}

static void *work(void *argument) {
    long one = 1;
#ifdef OPAQUE
    unsigned low, high;
    __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
#endif
    for (int done = 0; !done;) {
        SELVEDGE_STAR_BLOCK("attempt") {
            long old = load(&sum);
            if (exchange(&sum, old, old + (long)argument)) done = 1;
        }
    }
    __asm__ __volatile__("lock; xaddq %0, %1" : "+r"(one), "+m"(tickets) : : "memory", "cc");
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld %ld\n", sum, tickets);
    return 0;
}

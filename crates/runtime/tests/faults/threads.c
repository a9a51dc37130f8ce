// Two thousand threads alive at once, all under one lock.
#include <pthread.h>
#include <stdio.h>
enum { N = 2000 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;
long count;
static void *f(void *arg) {
    pthread_barrier_wait(&all);
    pthread_mutex_lock(&m);
    count++;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    static pthread_t t[N];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pthread_barrier_init(&all, NULL, N + 1);
    for (int i = 0; i < N; i++)
        if (pthread_create(&t[i], &attr, f, NULL) != 0) return 1;
    pthread_barrier_wait(&all);
    for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
    printf("%ld\n", count);
    return count != N;
}

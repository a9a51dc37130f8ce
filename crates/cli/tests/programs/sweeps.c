// Two threads go over arrays whose halves overlap by one element, and one looks for a value until it finds it.
#include <pthread.h>
#include <stdio.h>

enum { N = 4096 };
double from[N], to[N];
int wanted[N];
static long calls;

static long twice(long n) { return calls += 2 * n; }

static void *work(void *second) {
    int first = second ? N / 2 - 1 : 0, end = second ? N : N / 2;
    for (int i = first; i < end; i++)
        to[i] = 0.5 * from[i];
    int at = second ? N / 2 : 0;
    while (wanted[at] == 0) at++;
    return (void *)(long)at;
}

int main(void) {
    for (int i = 0; i < N; i++) from[i] = i;
    wanted[N / 2 - 1] = wanted[N - 1] = 1;
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    void *found[2];
    for (int i = 0; i < 2; i++) pthread_join(threads[i], &found[i]);
    printf("%g %ld %ld %ld\n", to[N - 1], (long)found[0], (long)found[1], twice(3));
}

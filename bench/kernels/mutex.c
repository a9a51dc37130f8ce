// Mutex-heavy: short critical sections on eight locks, each over a little shared data.
#include "common.h"
enum { LOCKS = 8 };
static struct { pthread_mutex_t lock; long count; long sum; char pad[64]; } bin[LOCKS];
static int rounds;
static void *work(void *id) {
    uint32_t x = 12345 + (uint32_t)(intptr_t)id;
    for (int i = 0; i < rounds; i++) {
        x = x * 1664525 + 1013904223;
        int b = x >> 29;
        pthread_mutex_lock(&bin[b].lock);
        bin[b].count++;
        bin[b].sum += x & 15;
        pthread_mutex_unlock(&bin[b].lock);
    }
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 1000000);
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&bin[i].lock, NULL);
    run_threads();
    long n = 0;
    for (int i = 0; i < LOCKS; i++) n += bin[i].count;
    printf("%ld\n", n);
}

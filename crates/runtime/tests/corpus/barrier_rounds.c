#include "corpus.h"
// The buggy form reads its neighbour in the round in which the neighbour writes.
int cell[2];
static pthread_barrier_t bar;
static void *work(void *arg) {
    int me = (int)(intptr_t)arg, sum = 0;
    for (int i = 0; i < 20; i++) {
        cell[me] = i; // race(cell)
#ifdef FIXED
        pthread_barrier_wait(&bar);
#endif
        sum += cell[1 - me]; // race(cell)
        pthread_barrier_wait(&bar);
    }
    return (void *)(intptr_t)sum;
}
int main(void) {
    pthread_barrier_init(&bar, NULL, 2);
    pthread_t a = start(work, (void *)0), b = start(work, (void *)1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}

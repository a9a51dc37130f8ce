/* A thread hands over work by an atomic counter; the other spins on it. */
#include <pthread.h>
#include <stdatomic.h>
static _Atomic unsigned long pending;
static _Atomic int stop;
long work[64];
static void *helper(void *arg) {
    while (!atomic_load(&stop)) {
        if (!atomic_load(&pending)) continue;
        for (int i = 0; i < 64; i++) work[i]++;
        atomic_store(&pending, 0);
    }
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, NULL, helper, NULL);
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 64; k++) work[k] += k;
        atomic_store(&pending, 1);
        while (atomic_load(&pending)) {}
    }
    atomic_store(&stop, 1);
    pthread_join(t, NULL);
    return work[1] != 400;
}

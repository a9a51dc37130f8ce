#include "corpus.h"
#include <stdatomic.h>
// Threads that spin see the same store again and again, until they see another one: only that orders them,
// and each time anew.
int data[3];
static atomic_int turn, other;
#ifdef FIXED
#define STORE memory_order_release
#else
#define STORE memory_order_relaxed
#endif
static void await(int value) {
    while (atomic_load_explicit(&turn, memory_order_acquire) != value)
        while (atomic_load_explicit(&other, memory_order_relaxed) == -1) {}
}
static void *plays(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int round = 0; round < 300; round++) {
        await(me);
        for (int i = 0; i < 3; i++) data[i]++; // race(data)
        atomic_store_explicit(&other, round, memory_order_relaxed);
        atomic_store_explicit(&turn, (me + 1) % 3, STORE);
    }
    return NULL;
}
int main(void) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) t[i] = start(plays, (void *)(intptr_t)i);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    return data[2] != 900;
}

#include "corpus.h"
#include <stdatomic.h>
#include <stdio.h>
// A thread that has ended and that no thread joins or detaches.
static atomic_int id;
static void *works(void *arg) {
    if (arg) atomic_store(&id, gettid());
    return arg;
}
int main(void) {
    pthread_t t, d;
    pthread_create(&d, NULL, works, NULL);
    pthread_detach(d);
    pthread_create(&t, NULL, works, &id); // race(thread)
#ifdef FIXED
    pthread_join(t, NULL);
#else
    char entry[64];
    while (!atomic_load(&id)) sched_yield();
    snprintf(entry, sizeof entry, "/proc/self/task/%d", atomic_load(&id));
    while (access(entry, F_OK) == 0) sched_yield();
#endif
    return 0;
}

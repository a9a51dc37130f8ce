#include "corpus.h"
#include <stdatomic.h>
// A thread that has ended and that no thread joins or detaches.
static atomic_int done;
static void *works(void *arg) {
    atomic_store(&done, 1);
    return arg;
}
int main(void) {
    pthread_t t, d;
    pthread_create(&d, NULL, works, NULL);
    pthread_detach(d);
    pthread_create(&t, NULL, works, NULL); // race(thread)
#ifdef FIXED
    pthread_join(t, NULL);
#else
    while (pthread_tryjoin_np(d, NULL), !atomic_load(&done)) sched_yield();
    usleep(100000);
#endif
    return 0;
}

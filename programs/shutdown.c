// Shape: asynchronous shutdown with queued jobs. A job that was accepted is queued after the worker has
// emptied the queue for the last time.
// Idea: servers that are stopped while requests come in.
// Shows: the assertion, if the worker ends between the submitter's look at the flag and the queue.
// Fixed: looks at the flag under the queue's lock.
#include "shape.h"
#include <stdatomic.h>

enum { JOBS = 3 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int stop, accepted;
static int queued, done;

static void *worker(void *arg) {
    int over = 0;
    while (!over) {
        pthread_mutex_lock(&lock);
        while (!queued && !atomic_load(&stop)) pthread_cond_wait(&changed, &lock);
        done += queued;
        queued = 0;
        over = atomic_load(&stop);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *submit(void *arg) {
    for (int i = 0; i < JOBS; i++) {
#ifdef FIXED
        pthread_mutex_lock(&lock);
        int open = !atomic_load(&stop);
#else
        int open = !atomic_load(&stop);
        pthread_mutex_lock(&lock);
#endif
        if (open) {
            atomic_fetch_add(&accepted, 1);
            queued++;
            pthread_cond_signal(&changed);
        }
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(void) {
    pthread_t t = start(worker, NULL), client = start(submit, NULL);
    work(200); // Serves its users.
    pthread_mutex_lock(&lock);
    atomic_store(&stop, 1);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    join(t);
    join(client);
    assert(done == atomic_load(&accepted));
    return 0;
}

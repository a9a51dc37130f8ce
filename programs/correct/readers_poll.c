// Correct: readers look at a version under a reader-writer lock until it is the last one.
#include "../shape.h"

enum { LAST = 3 };
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int version, copy;

static void *read_versions(void *arg) {
    for (int seen = 0; seen < LAST;) {
        pthread_rwlock_rdlock(&lock);
        seen = version;
        assert(copy == version);
        pthread_rwlock_unlock(&lock);
    }
    return arg;
}

static void *publish(void *arg) {
    for (int i = 1; i <= LAST; i++) {
        pthread_rwlock_wrlock(&lock);
        version = i;
        copy = i;
        pthread_rwlock_unlock(&lock);
    }
    return arg;
}

int main(void) {
    pthread_t readers[2] = {start(read_versions, NULL), start(read_versions, NULL)};
    pthread_t publisher = start(publish, NULL);
    join(publisher);
    join(readers[0]);
    join(readers[1]);
    return 0;
}

// Shape: use after free, without a crash. Handlers look whether a connection is open and then use its buffer;
// nothing orders that with closing it.
// Sizes: 3 10 20 50 100
// Idea: closing a file or socket that another thread still uses, as in the bugs of audio and network drivers
// that RFF and PERIOD are measured on.
// Shows: use after free, if the connection is closed between a handler's look and its use.
// Fixed: looks and uses with the lock held.
#include "shape.h"
#include <stdatomic.h>

struct connection {
    atomic_int open;
    int *buffer;
};
static struct connection connection;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
}

static void leave(void) {
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

static void *handle(void *arg) {
    enter();
    if (atomic_load(&connection.open)) {
        note(1);
        volatile int seen = connection.buffer[3];
        (void)seen;
    }
    leave();
    return arg;
}

static void *close_connection(void *arg) {
    work(300);
    note(1);
    enter();
    atomic_store(&connection.open, 0);
    free(connection.buffer);
    leave();
    return arg;
}

int main(int argc, char **argv) {
    pthread_t handlers[MOST];
    int count = size(argc, argv, 2);
    (void)lock;
    connection.buffer = calloc(16, sizeof *connection.buffer);
    atomic_store(&connection.open, 1);
    for (int i = 0; i < count; i++) handlers[i] = start(handle, NULL);
    pthread_t closer = start(close_connection, NULL);
    for (int i = 0; i < count; i++) join(handlers[i]);
    join(closer);
    return 0;
}

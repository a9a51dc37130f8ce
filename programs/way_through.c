// Shape: deadlock whose way leads through one of its own locks. The second thread takes the first lock
// alone, many times and at other places, before it comes to take both.
// Idea: program 5.2 of Park's *Active testing* (2012), why threads yield before they enter a cycle.
// Shows: a hang, if the second thread has its first lock when the first thread has its own.
// Fixed: both take the locks in the same order.
#include "shape.h"

enum { ENTRIES = 6 };
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER, index_lock = PTHREAD_MUTEX_INITIALIZER;
static int entries, sorted;

static void add(void) {
    pthread_mutex_lock(&table);
    entries++;
    pthread_mutex_unlock(&table);
}

static int size(void) {
    pthread_mutex_lock(&table);
    int now = entries;
    pthread_mutex_unlock(&table);
    return now;
}

static void *sort(void *arg) {
    pthread_mutex_lock(&table);
    pthread_mutex_lock(&index_lock);
    sorted = entries;
    pthread_mutex_unlock(&index_lock);
    pthread_mutex_unlock(&table);
    return arg;
}

static void *fill(void *arg) {
    for (int i = 0; i < ENTRIES; i++) {
        add();
        if (size() < 0) abort();
    }
#ifdef FIXED
    pthread_mutex_lock(&table);
    pthread_mutex_lock(&index_lock);
#else
    pthread_mutex_lock(&index_lock);
    pthread_mutex_lock(&table);
#endif
    sorted = 0;
    pthread_mutex_unlock(&table);
    pthread_mutex_unlock(&index_lock);
    return arg;
}

int main(void) {
    pthread_t a = start(sort, NULL), b = start(fill, NULL);
    join(a);
    join(b);
    return sorted <= entries ? 0 : 1;
}

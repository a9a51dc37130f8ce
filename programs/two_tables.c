// Shape: deadlock across modes. Each thread reads one table and writes the other, under reader-writer
// locks.
// Idea: lock-order cycles in which one side holds its lock in shared mode only.
// Shows: a hang, if both have their shared lock.
// Fixed: both lock the first table first.
#include "shape.h"

static pthread_rwlock_t names = PTHREAD_RWLOCK_INITIALIZER, numbers = PTHREAD_RWLOCK_INITIALIZER;
static int name, number;

static void *rename_one(void *arg) {
#ifdef FIXED
    pthread_rwlock_wrlock(&names);
    pthread_rwlock_rdlock(&numbers);
#else
    pthread_rwlock_rdlock(&numbers);
    pthread_rwlock_wrlock(&names);
#endif
    name = number + 1;
    pthread_rwlock_unlock(&names);
    pthread_rwlock_unlock(&numbers);
    note(30);
    return arg;
}

static void *renumber(void *arg) {
    note(30);
    pthread_rwlock_rdlock(&names);
    pthread_rwlock_wrlock(&numbers);
    number = name + 1;
    pthread_rwlock_unlock(&numbers);
    pthread_rwlock_unlock(&names);
    return arg;
}

int main(void) {
    pthread_t a = start(rename_one, NULL), b = start(renumber, NULL);
    join(a);
    join(b);
    return name + number > 0 ? 0 : 1;
}

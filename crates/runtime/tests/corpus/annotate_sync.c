#include "corpus.h"
#include <stdatomic.h>
// Synchronization that the program wants ignored orders nothing; nor do the atomics inside a lock of its own making,
// between its announcements.
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateThreadName(const char *file, int line, const char *name);
void __tsan_mutex_pre_lock(void *lock, unsigned flags);
void __tsan_mutex_post_lock(void *lock, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void *lock, unsigned flags);
void __tsan_mutex_post_unlock(void *lock, unsigned flags);
int ignored, inside, guarded;
static atomic_int flag, word, held;
static void *first(void *arg) {
    AnnotateThreadName(__FILE__, __LINE__, "first");
    ignored = 1; // race(ignored)
    inside = 1; // race(inside)
#ifndef FIXED
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
#endif
    atomic_store(&flag, 1);
#ifndef FIXED
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
#endif
    return arg;
}
static void *second(void *arg) {
    while (!atomic_load(&flag)) sched_yield();
    ignored = 2; // race(ignored)
#ifndef FIXED
    __tsan_mutex_pre_lock(&word, 0);
#endif
    atomic_store(&word, 1);
    atomic_load(&flag);
#ifndef FIXED
    __tsan_mutex_post_lock(&held, 0, 0);
    __tsan_mutex_pre_unlock(&held, 0);
    __tsan_mutex_post_unlock(&held, 0);
#endif
    inside = 2; // race(inside)
    return arg;
}
static void lock(void) {
    int zero = 0;
    __tsan_mutex_pre_lock(&held, 0);
    while (!atomic_compare_exchange_weak_explicit(&held, &zero, 1, memory_order_relaxed, memory_order_relaxed)) zero = 0;
    __tsan_mutex_post_lock(&held, 0, 0);
}
static void unlock(void) {
    __tsan_mutex_pre_unlock(&held, 0);
    atomic_store_explicit(&held, 0, memory_order_relaxed);
    __tsan_mutex_post_unlock(&held, 0);
}
static void *counts(void *arg) {
    lock();
    guarded++;
    unlock();
    return arg;
}
int main(void) {
    both(first, second);
    both(counts, counts);
    return guarded != 2;
}

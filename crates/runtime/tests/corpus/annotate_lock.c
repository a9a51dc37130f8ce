#include "corpus.h"
#include <stdatomic.h>
void AnnotateRWLockCreate(const char *, int, const volatile void *);
void AnnotateRWLockAcquired(const char *, int, const volatile void *, long);
void AnnotateRWLockReleased(const char *, int, const volatile void *, long);
void AnnotateRWLockDestroy(const char *, int, const volatile void *);
void AnnotateBenignRaceSized(const char *, int, const volatile void *, long, const char *);
// A lock that only annotations make one, and data on which a race is said to do no harm.
int data;
volatile int statistics;
static atomic_int lock;
static void *works(void *arg) {
    for (int i = 0; i < 100; i++) {
        while (atomic_exchange_explicit(&lock, 1, memory_order_relaxed)) sched_yield();
#ifdef FIXED
        AnnotateRWLockAcquired(__FILE__, __LINE__, &lock, 1);
#endif
        data++; // race(data)
#ifdef FIXED
        AnnotateRWLockReleased(__FILE__, __LINE__, &lock, 1);
#endif
        atomic_store_explicit(&lock, 0, memory_order_relaxed);
        statistics++; // race(statistics)
    }
    return arg;
}
int main(void) {
    AnnotateRWLockCreate(__FILE__, __LINE__, &lock);
#ifdef FIXED
    AnnotateBenignRaceSized(__FILE__, __LINE__, &statistics, sizeof statistics, "only counted");
#endif
    both(works, works);
    AnnotateRWLockDestroy(__FILE__, __LINE__, &lock);
    return data != 200;
}

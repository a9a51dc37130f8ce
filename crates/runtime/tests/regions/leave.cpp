// Functions that are left in every way there is, each after it took the lock: what the test looks at is
// which functions each acquisition happened in.
#include <csetjmp>
#include <pthread.h>

#include "selvedge.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jmp_buf before;
static int calls;

#define STANDS_ALONE extern "C" __attribute__((noinline))

STANDS_ALONE void take() {
    pthread_mutex_lock(&lock);
    calls++;
    pthread_mutex_unlock(&lock);
}

STANDS_ALONE void throws() {
    take();
    throw 1;
}

STANDS_ALONE void jumps() {
    take();
    longjmp(before, 1);
}

STANDS_ALONE void jumps_far() {
    SELVEDGE_ATOMIC_BEGIN("forgotten");
    jumps();
    SELVEDGE_REGION_END();
}

// Deeper than the ring of the call stack.
STANDS_ALONE void deep(int n) {
    if (n > 0)
        deep(n - 1);
    else
        take();
    calls++;
}

// Without anything that is recorded.
STANDS_ALONE void quiet(int n) {
    if (n > 0)
        quiet(n - 1);
    calls++;
}

STANDS_ALONE void opens() { SELVEDGE_ATOMIC_BEGIN("marked"); take(); }

STANDS_ALONE void *quits(void *) {
    take();
    pthread_exit(nullptr);
}

int main() {
    try {
        throws();
    } catch (int) {
    }
    take();
    if (setjmp(before) == 0)
        jumps_far();
    take();
    quiet(10000);
    deep(10000);
    take();
    opens();
    take();
    SELVEDGE_REGION_END();
    take();
    pthread_t thread;
    pthread_create(&thread, nullptr, quits, nullptr);
    pthread_join(thread, nullptr);
    take();
    return calls == 0;
}

/* Atomic blocks that are used as they must not be, one way for each definition; APART: used rightly, but never at the
 * same time. */
#include <pthread.h>
#include <selvedge.h>
#include <stdatomic.h>

static atomic_int count;

static void *work(void *unused) {
    (void)unused;
#ifndef NO_BLOCK
    SELVEDGE_ATOMIC_BEGIN("add");
#endif
    atomic_fetch_add(&count, 1);
#ifdef TWICE
    SELVEDGE_LINEARIZATION_POINT();
    SELVEDGE_LINEARIZATION_POINT();
#endif
#if !defined(NO_BLOCK) && !defined(UNCLOSED)
    SELVEDGE_REGION_END();
#endif
#ifdef UNOPENED
    SELVEDGE_REGION_END();
#endif
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, work, 0);
#ifdef APART
        pthread_join(threads[i], 0);
    }
#else
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
#endif
    SELVEDGE_OBSERVE("count", atomic_load(&count));
    return 0;
}

/* A set of one element. Two threads remove it; WRONG: both may succeed, as in the lock-free list of Herlihy and Shavit
 * before its errata. STRAY: a linearization point outside of every block. */
#include <pthread.h>
#include <selvedge.h>
#include <stdatomic.h>

static atomic_int marked;
static atomic_int removals;

static void *remove_element(void *unused) {
    (void)unused;
    int removed = 0;
    SELVEDGE_ATOMIC_BEGIN("remove");
    if (!SELVEDGE_DISTINGUISHED(atomic_load(&marked))) {
#ifdef WRONG
        atomic_store(&marked, 1);
        removed = 1;
#else
        int expected = 0;
        removed = SELVEDGE_DISTINGUISHED(atomic_compare_exchange_strong(&marked, &expected, 1));
#endif
    }
    SELVEDGE_REGION_END();
    SELVEDGE_OBSERVE("removed", removed);
    atomic_fetch_add(&removals, removed);
    return 0;
}

int main(void) {
#ifdef STRAY
    SELVEDGE_LINEARIZATION_POINT();
#endif
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, remove_element, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    const int left[2] = {atomic_load(&marked), 7};
    SELVEDGE_OBSERVE_ARRAY("left", left, 2);
    return 0;
}

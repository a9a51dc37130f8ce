/* Figure 6.6 of Burnim's thesis: an attempt that is repeated until nothing has come between, left by `break`. With
 * -DSTAR a sequential execution may leave an attempt out. With -DWRONG an attempt stores without comparing. */
#include <pthread.h>
#include <selvedge.h>

int x;

static void *iterate(void *number) {
    int i = (int)(long)number;
    while (1) {
#ifdef STAR
        SELVEDGE_STAR_BLOCK("attempt")
#endif
        {
            int prev = __atomic_load_n(&x, __ATOMIC_SEQ_CST);
            int curr = i * prev + i;
#ifdef WRONG
            __atomic_store_n(&x, curr, __ATOMIC_SEQ_CST);
            break;
#else
            if (__sync_bool_compare_and_swap(&x, prev, curr))
                break;
#endif
        }
    }
    return 0;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, iterate, (void *)(i + 1));
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    SELVEDGE_FOCUS(&x, sizeof x);
    return 0;
}

/* The lazy initialisation of section 6.5 of Burnim's thesis. The task that comes first initialises `table`; the test
 * outside of the lock is a star. Each task then adds to `sum`, so that the first one also reads what others wrote.
 * With -DSTAR and -DLAZY nothing is left to complain about: the first says that the test may fail, the second that it
 * does not matter whose initialisation it is. With -DBUG the flag is set before the table is filled. */
#include <pthread.h>
#include <selvedge.h>

int sum;
static int flag, table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef LAZY
#define BEGIN SELVEDGE_LAZY_BEGIN("table")
#define END SELVEDGE_REGION_END()
#else
#define BEGIN
#define END
#endif
#ifdef STAR
#define MAYBE(condition) SELVEDGE_STAR(condition)
#else
#define MAYBE(condition) (condition)
#endif

static void *work(void *nothing) {
    if (MAYBE(__atomic_load_n(&flag, __ATOMIC_SEQ_CST) != 0)) {
    } else {
#ifdef BUG
        if (!flag) {
            __atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST);
            table = 5;
        }
#else
        BEGIN;
        pthread_mutex_lock(&lock);
        if (!flag) {
            table = 5;
            __atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST);
        }
        pthread_mutex_unlock(&lock);
        END;
#endif
    }
    int t = table;
    pthread_mutex_lock(&lock);
    sum = sum + t;
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    SELVEDGE_FOCUS(&sum, sizeof sum);
    return 0;
}

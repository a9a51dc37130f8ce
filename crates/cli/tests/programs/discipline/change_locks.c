/* ChangeLocks of Hominy Grits, section 5.4.1: a field is guarded by one lock, and after a barrier by another. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t n = PTHREAD_MUTEX_INITIALIZER;
atomic_int barrier = 3;
int field;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    field++;
    pthread_mutex_unlock(&m);
    barrier--;
    while (barrier > 0)
        sched_yield();
    pthread_mutex_lock(&n);
    field++;
    pthread_mutex_unlock(&n);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    field = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return 0;
}

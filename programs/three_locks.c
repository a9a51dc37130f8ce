// Shape: deadlock of three. Each thread holds one lock and wants the next; no two of them are in conflict.
// Idea: Dijkstra's dining philosophers (1965).
// Shows: a hang, if all three have taken their first lock.
// Fixed: the last one takes its locks in the other order.
#include "shape.h"

enum { SEATS = 3 };
static pthread_mutex_t forks[SEATS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                       PTHREAD_MUTEX_INITIALIZER};
static int meals;

static void *dine(void *arg) {
    int seat = *(const int *)arg, left = seat, right = (seat + 1) % SEATS;
#ifdef FIXED
    if (left > right) {
        int swap = left;
        left = right;
        right = swap;
    }
#endif
    note(8 * seat);
    pthread_mutex_lock(&forks[left]);
    pthread_mutex_lock(&forks[right]);
    __atomic_fetch_add(&meals, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&forks[right]);
    pthread_mutex_unlock(&forks[left]);
    note(16 - 8 * seat);
    return NULL;
}

int main(void) {
    static int seats[SEATS] = {0, 1, 2};
    pthread_t threads[SEATS];
    for (int i = 0; i < SEATS; i++) threads[i] = start(dine, &seats[i]);
    for (int i = 0; i < SEATS; i++) join(threads[i]);
    return meals == SEATS ? 0 : 1;
}

// Shape: work-stealing queue. Owner and thief both take the last task.
// Sizes: 3 10 20 50 100
// Idea: the THE protocol of Cilk-5 (Frigo, Leiserson and Randall, PLDI 1998), a benchmark of CHESS.
// Here the owner does not look again under the lock when it meets the thief.
// Shows: the assertion, if the thief has passed its check when the owner takes the last task.
// Fixed: on a conflict the owner puts the tail back and decides under the lock.
#include "shape.h"
#include <stdatomic.h>

enum { MORE = 3 };
static atomic_int head, tail;
static atomic_int taken[MOST + MORE];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void push(void) { atomic_fetch_add(&tail, 1); }

static int pop(void) {
    int t = atomic_load(&tail) - 1;
#ifdef FIXED
    atomic_store(&tail, t);
    if (atomic_load(&head) > t) {
        atomic_store(&tail, t + 1);
        pthread_mutex_lock(&lock);
        t = atomic_load(&tail) - 1;
        if (atomic_load(&head) > t) t = -1;
        else atomic_store(&tail, t);
        pthread_mutex_unlock(&lock);
    }
    return t;
#else
    if (atomic_load(&head) > t) return -1;
    atomic_store(&tail, t);
    return t;
#endif
}

static int steal(void) {
    pthread_mutex_lock(&lock);
    int h = atomic_load(&head);
    atomic_store(&head, h + 1);
    if (h + 1 > atomic_load(&tail)) {
        atomic_store(&head, h);
        h = -1;
    }
    pthread_mutex_unlock(&lock);
    return h;
}

static void take(int task) {
    if (task >= 0) assert(atomic_fetch_add(&taken[task], 1) == 0);
}

static void *thief(void *arg) {
    take(steal());
    return arg;
}

int main(int argc, char **argv) {
    pthread_t thieves[MOST];
    int count = size(argc, argv, 1), tasks = count + MORE;
    for (int i = 0; i < tasks; i++) push();
    for (int i = 0; i < count; i++) thieves[i] = start(thief, NULL);
    for (int i = 0; i < tasks; i++) take(pop());
    for (int i = 0; i < count; i++) join(thieves[i]);
    return 0;
}

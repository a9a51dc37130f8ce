/* Locks on the heap: each queue has a member that points to its own, and tables have arrays of locks and of pointers to
   locks. The second thread uses the locks in another order than the first. */
#include <pthread.h>
#include <stdlib.h>

enum { LOCKS = 3, ROUNDS = 20 };

struct queue {
    int count;
    pthread_mutex_t *mut;
};

static struct queue *queues[2];
static pthread_mutex_t *row;
static pthread_mutex_t *scattered[LOCKS];
static int in_row[LOCKS], in_scattered[LOCKS];

static struct queue *make(void) {
    struct queue *q = malloc(sizeof *q);
    q->count = 0;
    q->mut = malloc(sizeof *q->mut);
    pthread_mutex_init(q->mut, 0);
    return q;
}

static void *work(void *arg) {
    int from = *(int *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct queue *q = queues[(from + i) % 2];
        pthread_mutex_lock(q->mut);
        q->count++;
        pthread_mutex_unlock(q->mut);
        int at = (from + i) % LOCKS;
        pthread_mutex_lock(&row[at]);
        in_row[at]++;
        pthread_mutex_unlock(&row[at]);
        pthread_mutex_lock(scattered[at]);
        in_scattered[at]++;
        pthread_mutex_unlock(scattered[at]);
    }
    return 0;
}

int main(void) {
    pthread_t threads[2];
    int from[2] = { 0, 1 };
    row = calloc(LOCKS, sizeof *row);
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&row[i], 0);
        scattered[i] = malloc(sizeof **scattered);
        pthread_mutex_init(scattered[i], 0);
    }
    for (int i = 0; i < 2; i++)
        queues[i] = make();
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, &from[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}

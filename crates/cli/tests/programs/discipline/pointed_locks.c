/* Locks on the heap: each queue has a member that points to its own, tables have arrays of locks and of pointers to
   locks, and workers are an array of structures with a lock further inside. The second thread uses the locks in another
   order than the first. */
#include <pthread.h>
#include <stdlib.h>

enum { LOCKS = 3, ROUNDS = 20 };

struct queue {
    int count;
    pthread_mutex_t *mut;
};

struct counts {
    pthread_mutex_t mutex;
    long hits;
};

typedef struct {
    int id;
    struct counts stats;
    char *buffer;
} worker;

struct connection {
    worker *of;
};

static struct queue *queues[2];
static worker *workers;
static int under_a_worker;
static pthread_mutex_t *row, *two;
static int in_two[2];
static pthread_mutex_t *scattered[LOCKS];
static int in_row[LOCKS], in_scattered[LOCKS];

static struct queue *make(void) {
    struct queue *q = malloc(sizeof *q);
    q->count = 0;
    q->mut = malloc(sizeof *q->mut);
    pthread_mutex_init(q->mut, 0);
    return q;
}

static void set_up(worker *me, int id) {
    me->id = id;
    pthread_mutex_init(&me->stats.mutex, 0);
}

static void count(struct connection *c) {
    pthread_mutex_lock(&c->of->stats.mutex);
    c->of->stats.hits++;
    pthread_mutex_unlock(&c->of->stats.mutex);
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
        pthread_mutex_lock(&two[i % 2]);
        in_two[i % 2]++;
        pthread_mutex_unlock(&two[i % 2]);
        struct connection c = { &workers[i % 4] };
        count(&c);
        pthread_mutex_lock(&workers[1].stats.mutex);
        under_a_worker++;
        pthread_mutex_unlock(&workers[1].stats.mutex);
    }
    return 0;
}

int main(void) {
    pthread_t threads[2];
    int from[2] = { 0, 1 };
    row = calloc(LOCKS, sizeof *row);
    two = calloc(2, sizeof *two);
    for (int i = 0; i < 2; i++)
        pthread_mutex_init(&two[i], 0);
    workers = calloc(4, sizeof(worker));
    for (int i = 0; i < 4; i++)
        set_up(&workers[i], i);
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

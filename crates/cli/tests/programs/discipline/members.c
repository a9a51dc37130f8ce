/* Globals, members of heap objects with locks of their own, an array of locks, a table, and a queue that
   hands buffers over. */
#include <pthread.h>
#include <stdlib.h>

struct account {
    int id;
    pthread_mutex_t lock;
    long balance;
};

struct buffer {
    struct buffer *next;
    char data[16];
};

struct {
    pthread_mutex_t lock;
    long hits, misses;
} stats = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum { STRIPES = 4 };
pthread_mutex_t stripes[STRIPES];
long table[STRIPES];

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
struct buffer *queue;

static struct account *accounts[2];
static volatile long consumed;

static void deposit(struct account *to, long amount) {
    pthread_mutex_lock(&to->lock);
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
}

static void *work(void *unused) {
    for (int i = 0; i < 8; i++) {
        deposit(accounts[i % 2], i);
        pthread_mutex_lock(&stats.lock);
        stats.hits++;
        stats.misses += i;
        pthread_mutex_unlock(&stats.lock);
        pthread_mutex_lock(&stripes[i % STRIPES]);
        table[i % STRIPES]++;
        pthread_mutex_unlock(&stripes[i % STRIPES]);
    }
    return unused;
}

static void *consume(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&queue_lock);
        while (!queue)
            pthread_cond_wait(&queue_filled, &queue_lock);
        struct buffer *taken = queue;
        queue = taken->next;
        pthread_mutex_unlock(&queue_lock);
        consumed += taken->data[0];
        free(taken);
    }
    return unused;
}

static void *produce(void *unused) {
    for (int i = 0; i < 3; i++) {
        struct buffer *made = malloc(sizeof *made);
        made->data[0] = (char)i;
        pthread_mutex_lock(&queue_lock);
        made->next = queue;
        queue = made;
        pthread_cond_signal(&queue_filled);
        pthread_mutex_unlock(&queue_lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&stripes[i], 0);
    for (int i = 0; i < 2; i++) {
        accounts[i] = calloc(1, sizeof **accounts);
        pthread_mutex_init(&accounts[i]->lock, 0);
    }
    pthread_create(&threads[0], 0, work, 0);
    pthread_create(&threads[1], 0, work, 0);
    pthread_create(&threads[2], 0, consume, 0);
    pthread_create(&threads[3], 0, produce, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    return 0;
}

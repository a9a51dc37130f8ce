/* Functions that rely on their callers to hold the lock, of a list and of an object, one of them through another.
   One is never called in a run. The twin calls another without the lock when the list is full. */
#include <pthread.h>
#include <stdlib.h>

struct node {
    struct node *next;
    int key;
};

struct list {
    pthread_mutex_t lock;
    struct node *first;
    int length;
};

static struct list list = { .lock = PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_lines;
static int log_used;

static void note(int lines);

/* The caller holds the lock of the list. */
static void link_first(struct list *of, struct node *node) {
    node->next = of->first;
    of->first = node;
    of->length++;
}

/* So here. */
static void put(struct list *of, int key) {
    struct node *node = malloc(sizeof *node);
    node->key = key;
    link_first(of, node);
}

/* Never called in a run, but right. */
static void clear(struct list *of) {
    of->first = NULL;
    of->length = 0;
}

static void note(int lines) {
    log_lines += lines;
    log_used = 1;
}

static void *work(void *arg) {
    struct list *of = arg;
    for (int i = 0; i < 6; i++) {
        pthread_mutex_lock(&of->lock);
        put(of, i);
        int full = of->length > 1000;
        if (full)
            clear(of);
        pthread_mutex_unlock(&of->lock);
        if (full) {
#ifdef PLANTED
            put(of, -1); /* planted */
#else
            pthread_mutex_lock(&of->lock);
            put(of, -1);
            pthread_mutex_unlock(&of->lock);
#endif
        }
        pthread_mutex_lock(&log_lock);
        note(1);
        pthread_mutex_unlock(&log_lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, &list);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}

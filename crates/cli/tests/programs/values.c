// Two threads change variables of many types without a lock.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum state { IDLE, BUSY, DONE };

struct queue {
    long unused;
    int length;
    double load;
    const char *owner;
    enum state state;
    struct queue *next;
    bool full;
};

struct queue queues[2];
atomic_uint turns;
char letter = 'a';

static void *work(void *name) {
    struct queue *queue = &queues[1];
    queue->length -= 3;
    queue->load += 0.5;
    queue->owner = name;
    queue->state = BUSY;
    queue->next = &queues[0];
    queue->full = true;
    letter = 'b';
    atomic_fetch_add(&turns, 1);
    return NULL;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, work, "a worker with a long name");
    pthread_create(&b, NULL, work, "short");
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}

// A queue without locks around it, after Michael and Scott; four words are compared and exchanged at once, so that the
// tail is never behind. Tasks put in and take out.
#include "../noninterference/kernel.h"
#include <selvedge.h>

#ifndef STAR
#undef SELVEDGE_STAR_BLOCK
#define SELVEDGE_STAR_BLOCK(name) if (1)
#endif

struct node {
    int value;
    struct node *next;
};

static struct node first, nodes[3] = {{10, NULL}, {20, NULL}, {30, NULL}};
static struct node *head = &first, *tail = &first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct node *look(struct node **at) {
    pthread_mutex_lock(&lock);
    struct node *seen = *at;
    pthread_mutex_unlock(&lock);
    return seen;
}

static int append(struct node *old, struct node *new) {
    pthread_mutex_lock(&lock);
    int same = tail == old && old->next == NULL;
    if (same) {
        old->next = new;
        tail = new;
    }
    pthread_mutex_unlock(&lock);
    return same;
}

static int advance(struct node *old, struct node *new) {
    pthread_mutex_lock(&lock);
    int same = head == old;
    if (same)
        head = new;
    pthread_mutex_unlock(&lock);
    return same;
}

static void put(struct node *n) {
    while (1) {
        struct node *t = look(&tail);
        SELVEDGE_STAR_BLOCK("put") {
            if (append(t, n))
                return;
        }
    }
}

static int take(void) {
    while (1) {
        struct node *h = look(&head);
        // Whose successor is read depends on the head that was seen, so that this belongs to the attempt, too.
        SELVEDGE_STAR_BLOCK("take") {
            struct node *n = look(&h->next);
            if (n == NULL)
                return -1;
            if (advance(h, n))
                return n->value;
        }
    }
}

static int taken[2];

static void *work(void *arg) {
    int number = (int)(long)arg;
    if (number < 3)
        put(&nodes[number]);
    else
        taken[number - 3] = take();
    return NULL;
}

int main(void) {
    pthread_t threads[5];
    for (long i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    printf("queue %d %d:", taken[0], taken[1]);
    for (struct node *n = head->next; n; n = n->next)
        printf(" %d", n->value);
    printf("\n");
    return 0;
}

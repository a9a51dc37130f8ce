// A stack without locks around it: the top and a version number are compared and exchanged at once. Tasks push and pop.
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

static struct node nodes[3] = {{10, NULL}, {20, NULL}, {30, NULL}}, *top;
static int version;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int cas2(struct node *old, int old_version, struct node *new) {
    pthread_mutex_lock(&lock);
    int same = top == old && version == old_version;
    if (same) {
        top = new;
        version = version + 1;
    }
    pthread_mutex_unlock(&lock);
    return same;
}

static void look(struct node **t, int *v) {
    pthread_mutex_lock(&lock);
    *t = top;
    *v = version;
    pthread_mutex_unlock(&lock);
}

static void push(struct node *n) {
    while (1) {
        struct node *local_top;
        int local_v;
        look(&local_top, &local_v);
        n->next = local_top;
        SELVEDGE_STAR_BLOCK("push") {
            if (cas2(local_top, local_v, n))
                return;
        }
    }
}

static int pop(void) {
    while (1) {
        struct node *local_top;
        int local_v;
        look(&local_top, &local_v);
        SELVEDGE_STAR_BLOCK("pop") {
            if (local_top == NULL)
                return -1;
            struct node *n = local_top->next;
            if (cas2(local_top, local_v, n))
                return local_top->value;
        }
    }
}

static int popped[2];

static void *work(void *arg) {
    int number = (int)(long)arg;
    if (number < 3)
        push(&nodes[number]);
    else
        popped[number - 3] = pop();
    return NULL;
}

int main(void) {
    pthread_t threads[5];
    for (long i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    printf("stack %d %d:", popped[0], popped[1]);
    for (struct node *n = top; n; n = n->next)
        printf(" %d", n->value);
    printf("\n");
    return 0;
}

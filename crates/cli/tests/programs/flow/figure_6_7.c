/* Figure 6.7 of Burnim's thesis: a stack with a version number, whose pair is compared and exchanged at once. The
 * results are what is popped and what is left. With -DSTAR the two attempts are stars. With -DRECYCLE one thread pops
 * two nodes and pushes the first again, each operation being a task; then it is wrong not to compare the version, as with
 * -DWRONG: a node that is popped and pushed again meanwhile is taken for the same. */
#include <pthread.h>
#include <selvedge.h>

struct node {
    int value;
    struct node *next;
};

#ifdef RECYCLE
static struct node nodes[2] = {{10, 0}, {20, &nodes[0]}};
static struct node *top = &nodes[1];
#else
static struct node nodes[2] = {{10, 0}, {20, 0}};
static struct node *top;
#endif
static int version;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int cas2(struct node *old, int old_version, struct node *new) {
    int same;
    pthread_mutex_lock(&lock);
    same = top == old;
#ifndef WRONG
    same = same && version == old_version;
#endif
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

#ifdef STAR
#define ATTEMPT SELVEDGE_STAR_BLOCK("attempt")
#else
#define ATTEMPT
#endif

#ifdef RECYCLE
#define TASK(operation) \
    SELVEDGE_TASK_BEGIN("operation"); \
    operation; \
    SELVEDGE_REGION_END()
#else
#define TASK(operation) operation
#endif

static void push(struct node *n) {
    while (1) {
        struct node *local_top;
        int local_v;
        look(&local_top, &local_v);
        n->next = local_top;
#ifndef RECYCLE /* Fewer sequential executions. */
        ATTEMPT
#endif
        {
            if (cas2(local_top, local_v, n))
                return;
        }
    }
}

static struct node *pop(void) {
    while (1) {
        struct node *local_top;
        int local_v;
        look(&local_top, &local_v);
        ATTEMPT
        {
            if (!local_top)
                return 0;
            struct node *n = local_top->next;
            if (cas2(local_top, local_v, n))
                return local_top;
        }
    }
}

static void *popper(void *nothing) {
    struct node *n;
    TASK(n = pop());
    int popped = n ? n->value : -1;
    SELVEDGE_FOCUS(&popped, sizeof popped);
    return nothing;
}

#ifdef RECYCLE
static void *recycler(void *nothing) {
    struct node *first, *second;
    TASK(first = pop());
    TASK(second = pop());
    int popped = second ? second->value : -1;
    SELVEDGE_FOCUS(&popped, sizeof popped);
    TASK(push(first));
    return nothing;
}
#else
static void *pusher(void *number) {
    push(&nodes[(long)number]);
    return 0;
}
#endif

int main(void) {
    pthread_t threads[3];
    int started = 0;
#ifdef RECYCLE
    pthread_create(&threads[started++], 0, recycler, 0);
#else
    pthread_create(&threads[started++], 0, pusher, (void *)0);
    pthread_create(&threads[started++], 0, pusher, (void *)1);
#endif
    pthread_create(&threads[started++], 0, popper, 0);
    for (int i = 0; i < started; i++) pthread_join(threads[i], 0);
    for (struct node *n = top; n; n = n->next) SELVEDGE_FOCUS(&n->value, sizeof n->value);
    return 0;
}

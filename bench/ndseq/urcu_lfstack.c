/* The lock-free stack of liburcu, with its assembly: two tasks push, two pop. What is popped and what is left is the
 * result. */
#define _LGPL_SOURCE
#include <urcu/lfstack.h>

#include <pthread.h>
#include <stdio.h>

struct element {
    struct cds_lfs_node node;
    int value;
};

static struct element elements[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
static struct cds_lfs_stack stack;
static int popped[2];

static void *push(void *number) {
    cds_lfs_push(&stack, &elements[(long)number].node);
    return 0;
}

static void *pop(void *number) {
    struct element *element = (struct element *)cds_lfs_pop_blocking(&stack);
    popped[(long)number] = element ? element->value : 0;
    return 0;
}

int main(void) {
    pthread_t threads[4];
    cds_lfs_init(&stack);
    push(0);
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[2 * i], 0, push, (void *)(i + 1));
        pthread_create(&threads[2 * i + 1], 0, pop, (void *)i);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("popped %d %d, left", popped[0], popped[1]);
    for (struct element *e; (e = (struct element *)cds_lfs_pop_blocking(&stack));)
        printf(" %d", e->value);
    printf("\n");
    return 0;
}

/* The stack of Concurrency Kit for unique producers: two tasks push, two pop. What is popped and what is left is the
 * result. */
#include <ck_stack.h>
#include <pthread.h>
#include <stdio.h>

struct element {
    ck_stack_entry_t entry;
    int value;
};

static struct element elements[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
static ck_stack_t stack = CK_STACK_INITIALIZER;
static int popped[2];

static void *push(void *number) {
    ck_stack_push_upmc(&stack, &elements[(long)number].entry);
    return 0;
}

static void *pop(void *number) {
    struct element *element = (struct element *)ck_stack_pop_upmc(&stack);
    popped[(long)number] = element ? element->value : 0;
    return 0;
}

int main(void) {
    pthread_t threads[4];
    push(0);
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[2 * i], 0, push, (void *)(i + 1));
        pthread_create(&threads[2 * i + 1], 0, pop, (void *)i);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("popped %d %d, left", popped[0], popped[1]);
    for (ck_stack_entry_t *e = stack.head; e; e = e->next)
        printf(" %d", ((struct element *)e)->value);
    printf("\n");
    return 0;
}

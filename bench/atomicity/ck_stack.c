/* The stack of Concurrency Kit for unique producers (ck_stack_push_upmc, ck_stack_pop_upmc), whose documentation demands
 * that an element is not pushed again while another thread may still pop it. Two threads pop; one of them pushes a
 * new element. With -DREUSE it pushes the element that it popped first: the other thread may have read that the next
 * one is an element which is popped meanwhile, and its compare-exchange succeeds all the same.
 * Built with CK_USE_CC_BUILTINS=1, because no compiler instruments assembly. */
#include <ck_stack.h>
#include <pthread.h>
#include <selvedge.h>

struct element {
    ck_stack_entry_t entry;
    int value;
};

static struct element elements[4] = {{.value = 1}, {.value = 2}, {.value = 3}, {.value = 4}};
static ck_stack_t stack = CK_STACK_INITIALIZER;

static void push(struct element *element) {
    SELVEDGE_ATOMIC_BEGIN("push");
    ck_stack_push_upmc(&stack, &element->entry);
    SELVEDGE_REGION_END();
}

static struct element *pop(void) {
    SELVEDGE_ATOMIC_BEGIN("pop");
    struct element *element = (struct element *)ck_stack_pop_upmc(&stack);
    SELVEDGE_REGION_END();
    SELVEDGE_OBSERVE("popped", element ? element->value : 0);
    return element;
}

static void *pops(void *unused) {
    (void)unused;
    pop();
    return 0;
}

static void *pops_and_pushes(void *unused) {
    (void)unused;
    struct element *first = pop();
    pop();
#ifndef REUSE
    first = 0;
#endif
    push(first ? first : &elements[3]);
    return 0;
}

int main(void) {
    for (int i = 0; i < 3; i++)
        push(&elements[i]);
    pthread_t threads[2];
    pthread_create(&threads[0], 0, pops, 0);
    pthread_create(&threads[1], 0, pops_and_pushes, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    for (int i = 0; i < 3; i++)
        pop();
    return 0;
}

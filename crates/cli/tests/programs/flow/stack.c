/* A Treiber stack of which four tasks push. The retry loop is optimistic: with -DSTAR a star is around the attempt.
 * The result is the sum of what is on the stack, which no order changes. With -DWRONG an attempt does not look whether
 * it succeeded, so that elements are lost. */
#include <pthread.h>
#include <selvedge.h>
#include <stdio.h>

struct element {
    int value;
    struct element *next;
};

struct element elements[4];
struct element *top;

static void *push(void *number) {
    struct element *e = &elements[(long)number];
    int done = 0;
    while (!done) {
#ifdef STAR
        SELVEDGE_STAR_BLOCK("attempt")
#endif
        {
            struct element *old = __atomic_load_n(&top, __ATOMIC_SEQ_CST);
            e->next = old;
#ifdef WRONG
            __atomic_store_n(&top, e, __ATOMIC_SEQ_CST);
            done = 1;
#else
            if (__atomic_compare_exchange_n(&top, &old, e, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) done = 1;
#endif
        }
    }
    return 0;
}

int main(void) {
    pthread_t threads[TASKS];
    for (long i = 0; i < TASKS; i++) {
        elements[i].value = 1 << i;
        pthread_create(&threads[i], 0, push, (void *)i);
    }
    for (int i = 0; i < TASKS; i++) pthread_join(threads[i], 0);
    int sum = 0;
    for (struct element *e = top; e; e = e->next) sum += e->value;
    printf("%d\n", sum);
    return 0;
}

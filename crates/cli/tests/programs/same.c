/* A list whose order depends on the schedule, and a predicate of the program that compares it. The predicate uses
 * what `main` has set up, so it must run in the program. Options choose other predicates. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <selvedge.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int list[2];
static int len;
static int modulus;
static int *weights;

static void *add(void *number) {
    pthread_mutex_lock(&lock);
    list[len++] = *(int *)number;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The sums are the same modulo what `main` says. */
static int same_sum(const void *a, size_t a_size, const void *b, size_t b_size) {
    int sums[2] = {0, 0};
    for (size_t i = 0; i < a_size / sizeof(int); i++)
        sums[0] += weights[i] * ((const int *)a)[i];
    for (size_t i = 0; i < b_size / sizeof(int); i++)
        sums[1] += weights[i] * ((const int *)b)[i];
    return sums[0] % modulus == sums[1] % modulus;
}

static int same_order(const void *a, size_t a_size, const void *b, size_t b_size) {
    return a_size == b_size && ((const int *)a)[0] == ((const int *)b)[0];
}

static int never(const void *a, size_t a_size, const void *b, size_t b_size) {
    (void)a, (void)a_size, (void)b, (void)b_size;
    return 0;
}

static int smaller(const void *a, size_t a_size, const void *b, size_t b_size) {
    return a_size == b_size && ((const int *)a)[0] <= ((const int *)b)[0];
}

static int crash(const void *a, size_t a_size, const void *b, size_t b_size) {
    (void)a, (void)a_size, (void)b, (void)b_size;
    abort();
}

static int loop(const void *a, size_t a_size, const void *b, size_t b_size) {
    (void)a, (void)a_size, (void)b, (void)b_size;
    for (volatile int i = 1; i; i = 1)
        ;
    return 1;
}

#ifndef SAME
#define SAME same_sum
#endif

int main(void) {
    pthread_t threads[2];
    int numbers[2] = {3, 7};
    int (*unused[])(const void *, size_t, const void *, size_t) = {same_sum, same_order, never, smaller, crash, loop};
    (void)unused;
    modulus = 1000;
    weights = calloc(2, sizeof *weights);
    weights[0] = weights[1] = 1;
    SELVEDGE_DETERMINISTIC_BEGIN("fill");
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    SELVEDGE_ENSURE_ARRAY_BY("list", list, len, SELVEDGE_SAME(SAME));
    SELVEDGE_REGION_END();
    printf("%d\n", len);
    return 0;
}

/* A queue behind a mutex: whatever the scenario and the predicate, its operations are linearizable.
 * locked_queue SEED PREDICATE [waits]: the seed chooses what two or three threads do; PREDICATE is exact, within, set or
 * multiset; with `waits` a queue of one place, whose operations wait until they can be done. */
#include <pthread.h>
#include <selvedge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int items[16], count, waits;
static const char *predicate;
static int plans[3][2];

static int next(unsigned *seed, int below) {
    *seed = *seed * 1664525u + 1013904223u;
    return (int)(*seed >> 16) % below;
}

static void push(int value) {
    pthread_mutex_lock(&lock);
    while (waits && count == 1)
        pthread_cond_wait(&changed, &lock);
    items[count++] = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int pop(void) {
    pthread_mutex_lock(&lock);
    while (waits && count == 0)
        pthread_cond_wait(&changed, &lock);
    int value = count ? items[0] : -1;
    if (count) {
        memmove(items, items + 1, sizeof items - sizeof *items);
        count--;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return value;
}

static void *work(void *plan) {
    for (int i = 0; i < 2; i++) {
        int value = ((int *)plan)[i];
        if (value) {
            SELVEDGE_ATOMIC_BEGIN("push");
            push(value);
            SELVEDGE_REGION_END();
            continue;
        }
        SELVEDGE_ATOMIC_BEGIN("pop");
        int popped = pop();
        SELVEDGE_REGION_END();
        if (!strcmp(predicate, "within"))
            SELVEDGE_OBSERVE_BY("popped", popped, SELVEDGE_WITHIN(2));
        else
            SELVEDGE_OBSERVE("popped", popped);
    }
    return 0;
}

int main(int argc, char **argv) {
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    predicate = argc > 2 ? argv[2] : "exact";
    waits = argc > 3;
    int threads = waits ? 2 : 2 + next(&seed, 2);
    /* Those that wait push as much as they pop. */
    for (int t = 0; t < threads; t++)
        for (int i = 0; i < 2; i++)
            plans[t][i] = waits ? (t == 0) * (i + 1) : next(&seed, 2) * (1 + next(&seed, 4));
    pthread_t all[3];
    for (int t = 0; t < threads; t++)
        pthread_create(&all[t], 0, work, plans[t]);
    for (int t = 0; t < threads; t++)
        pthread_join(all[t], 0);
    if (!strcmp(predicate, "set"))
        SELVEDGE_OBSERVE_ARRAY_BY("left", items, (size_t)count, SELVEDGE_SET);
    else if (!strcmp(predicate, "multiset"))
        SELVEDGE_OBSERVE_ARRAY_BY("left", items, (size_t)count, SELVEDGE_MULTISET);
    else
        SELVEDGE_OBSERVE_ARRAY("left", items, (size_t)count);
    return 0;
}

/* Figure 6.2 of Burnim's thesis, in its shape: a pruned search. The test of the bound saves work, and reads `best`
 * without the lock; whether it prunes does not matter for the result. With -DSTAR a star says so. */
#include <pthread.h>
#include <selvedge.h>
#include <stdio.h>

int best = 1000;
int cost[3] = {7, 5, 9};
int bound[3] = {6, 4, 8};
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *expand(void *number) {
    int i = (int)(long)number;
    int skip = 0;
#ifdef STAR
    SELVEDGE_STAR_BLOCK("prune") {
        if (bound[i] >= best) skip = 1;
    }
#else
    if (bound[i] >= best) skip = 1;
#endif
    if (skip) return 0;
    pthread_mutex_lock(&lock);
    if (cost[i] < best) best = cost[i];
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, expand, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%d\n", best);
    return 0;
}

/* Threads look for the cheapest of three offers. Each access to `best` is under the lock, but the comparison and the
 * update are in two critical sections: a dearer offer may replace a cheaper one. */
#include <pthread.h>
#include <stdio.h>

static const int cost[3] = {7, 5, 9};
static int best = 1000;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *consider(void *number) {
    int mine = cost[(long)number];
    pthread_mutex_lock(&lock);
    int cheaper = mine < best;
    pthread_mutex_unlock(&lock);
    if (cheaper) {
        pthread_mutex_lock(&lock);
        best = mine;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, consider, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    printf("the best costs %d\n", best);
    return 0;
}

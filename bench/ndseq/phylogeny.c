// The cheapest trees over some species by branch and bound; all that cost the same are kept in a list. Whether a tree
// is worth its cost is first tested without the lock. Without -DFIXED the cost is improved and the list is changed
// under the lock, but each by itself: another tree may come between, and a dear one stays in the list.
#include "../noninterference/kernel.h"
#include <selvedge.h>

#define TREES 4
#ifndef STAR
#undef SELVEDGE_STAR
#define SELVEDGE_STAR(condition) (condition)
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const int bounds[TREES] = {3, 2, 4, 1}, costs[TREES] = {6, 5, 5, 7};
static int lowest = 1000, count, list[TREES];

static void keep(int tree) {
    list[count] = tree;
    count = count + 1;
}

static void consider(int tree) {
    if (SELVEDGE_STAR(bounds[tree] >= lowest))
        return;
    int cost = costs[tree];
    pthread_mutex_lock(&lock);
#ifdef FIXED
    if (cost < lowest) {
        lowest = cost;
        count = 0;
    }
    if (cost == lowest)
        keep(tree);
    pthread_mutex_unlock(&lock);
#else
    int better = cost < lowest, good = cost <= lowest;
    if (better)
        lowest = cost;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    if (better)
        count = 0;
    if (good)
        keep(tree);
    pthread_mutex_unlock(&lock);
#endif
}

static void *search(void *number) {
    consider((int)(long)number);
    return NULL;
}

int main(void) {
    pthread_t threads[TREES];
    for (long i = 0; i < TREES; i++)
        pthread_create(&threads[i], NULL, search, (void *)i);
    for (int i = 0; i < TREES; i++)
        pthread_join(threads[i], NULL);
    printf("phylogeny %d:", lowest);
    for (int i = 0; i < count; i++)
        printf(" %d", list[i]);
    printf("\n");
    return 0;
}

/* Figure 6.1 of Burnim's thesis: branch and bound over three solutions. Whether a solution is pruned depends on a
 * read without the lock; with -DSTAR the sequential program may choose not to prune. With -DBUG the best solution is
 * written behind the lock that guards its cost. */
#include <pthread.h>
#include <selvedge.h>

int lowest_cost = 1000, best_soln;
static const int bound[3] = {3, 2, 5}, cost[3] = {5, 4, 6};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *solve(void *number) {
    int i = (int)(long)number;
    int b = bound[i];
#ifdef STAR
    if (SELVEDGE_STAR(b >= lowest_cost)) return 0;
#else
    if (b >= lowest_cost) return 0;
#endif
    int c = cost[i];
    pthread_mutex_lock(&lock);
    int better = c < lowest_cost;
    if (better) {
        lowest_cost = c;
#ifndef BUG
        best_soln = i;
#endif
    }
    pthread_mutex_unlock(&lock);
#ifdef BUG
    if (better) best_soln = i;
#endif
    return 0;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, solve, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    SELVEDGE_FOCUS(&lowest_cost, sizeof lowest_cost);
    SELVEDGE_FOCUS(&best_soln, sizeof best_soln);
    return 0;
}

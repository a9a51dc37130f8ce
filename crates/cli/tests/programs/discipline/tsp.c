/* Branch and bound after the TSP of the thesis: tours wait on a stack under a lock; the bound is written under
   its lock and read without it. */
#include <pthread.h>
#include <string.h>

#ifndef CITIES
#define CITIES 7
#endif
enum { WAITING = 512 };

struct tour {
    int length, cities;
    int visited[CITIES];
};

static int distance[CITIES][CITIES];
static struct tour stack[WAITING];
static int top;
static pthread_mutex_t stack_lock = PTHREAD_MUTEX_INITIALIZER;
int bound;
pthread_mutex_t bound_lock = PTHREAD_MUTEX_INITIALIZER;

static int take(struct tour *into) {
    pthread_mutex_lock(&stack_lock);
    int some = top > 0;
    if (some)
        *into = stack[--top];
    pthread_mutex_unlock(&stack_lock);
    return some;
}

static void put(const struct tour *tour) {
    pthread_mutex_lock(&stack_lock);
    if (top < WAITING)
        stack[top++] = *tour;
    pthread_mutex_unlock(&stack_lock);
}

static int was_at(const struct tour *tour, int city) {
    for (int i = 0; i < tour->cities; i++)
        if (tour->visited[i] == city)
            return 1;
    return 0;
}

static void extend(const struct tour *tour) {
    int here = tour->visited[tour->cities - 1];
    for (int city = 0; city < CITIES; city++) {
        if (was_at(tour, city))
            continue;
        struct tour longer = *tour;
        longer.visited[longer.cities++] = city;
        longer.length += distance[here][city];
        if (longer.length >= bound) /* without the lock */
            continue;
        if (longer.cities == CITIES) {
            pthread_mutex_lock(&bound_lock);
            if (longer.length < bound)
                bound = longer.length;
            pthread_mutex_unlock(&bound_lock);
        } else {
            put(&longer);
        }
    }
}

static void *solve(void *unused) {
    struct tour tour;
    while (take(&tour))
        extend(&tour);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    struct tour first = { .length = 0, .cities = 1 };
    for (int i = 0; i < CITIES; i++)
        for (int j = 0; j < CITIES; j++)
            distance[i][j] = (i * 7 + j * 13) % 17 + 1;
    bound = 1000;
    put(&first);
    for (int i = 1; i < CITIES; i++) {
        struct tour other = { .length = i, .cities = 1, .visited = { i } };
        put(&other);
    }
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, solve, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return 0;
}

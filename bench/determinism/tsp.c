// The shortest tour through some cities, by branch and bound: threads take first cities from a counter under a
// lock, and prune tours that are longer than the best so far, which they read without a lock. The length does not
// depend on the schedule; the tour does where several are shortest.
#include "../noninterference/kernel.h"

#define CITIES SIZED(5, 14)

static pthread_mutex_t best_lock = PTHREAD_MUTEX_INITIALIZER, work_lock = PTHREAD_MUTEX_INITIALIZER;
static int distances[CITIES][CITIES];
static int best = 1 << 30, tour[CITIES], next_city = 1;

static void visit(int *path, unsigned seen, int at, int length) {
    if (length >= best)
        return;
    if (at == CITIES) {
        // A tour and the same the other way round are one.
        if (path[1] > path[CITIES - 1])
            return;
        length += distances[path[CITIES - 1]][0];
        pthread_mutex_lock(&best_lock);
        if (length < best) {
            best = length;
            for (int i = 0; i < CITIES; i++)
                tour[i] = path[i];
        }
        pthread_mutex_unlock(&best_lock);
        return;
    }
    for (int city = 1; city < CITIES; city++)
        if (!(seen & 1u << city)) {
            path[at] = city;
            visit(path, seen | 1u << city, at + 1, length + distances[path[at - 1]][city]);
        }
}

static int take(void) {
    pthread_mutex_lock(&work_lock);
    int city = next_city++;
    pthread_mutex_unlock(&work_lock);
    return city;
}

static void *search_part(void *arg) {
    (void)arg;
    for (int city = take(); city < CITIES; city = take()) {
        int path[CITIES] = {0, city};
        visit(path, 1u << city, 2, distances[0][city]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    uint64_t state = 9 + (uint64_t)input;
    for (int i = 0; i < CITIES; i++)
        for (int j = 0; j < i; j++)
            // In the third input all tours are equally long.
            distances[i][j] = distances[j][i] =
                input == 3 ? 50 : 10 + (int)(next_random(&state) % 90);
    SELVEDGE_DETERMINISTIC_BEGIN("tsp");
    SELVEDGE_ASSUME_ARRAY("distances", distances[0], CITIES * CITIES);
    in_parallel(search_part, NULL);
    SELVEDGE_ENSURE("length", best);
    SELVEDGE_REGION_END();
    printf("tsp %d, %d\n", best, tour[1]);
    return 0;
}

/* A function whose inputs and results are globals. It overwrites its input at once. */
#include <pthread.h>
#include <stdlib.h>

struct box {
    int n;
    struct box *inner;
};

int seed, result, last, order[2];
struct box *box;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int len, base;

static void *add(void *argument) {
    int number = *(int *)argument;
    pthread_mutex_lock(&lock);
    result += base * number;
    order[len++] = base * number;
    last = number;
    pthread_mutex_unlock(&lock);
    return NULL;
}

__attribute__((noinline)) void solve(void) {
    pthread_t threads[2];
    int numbers[2] = {1, 2};
    base = seed;
    seed = 0;
    result = 0;
    len = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    box->inner->n = result;
}

int main(int count, char **words) {
    seed = count > 1 ? atoi(words[1]) : 10;
    box = calloc(1, sizeof *box);
    box->inner = calloc(1, sizeof *box);
    box->n = seed;
    solve();
    return 0;
}

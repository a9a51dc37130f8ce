/* Values of every kind, in blocks of threads that began them, were started in them, or joined them. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <selvedge.h>

enum { LARGE = 1 << 18 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long long token;
static bool handed, done;

static void *pool(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    while (!handed)
        pthread_cond_wait(&changed, &lock);
    SELVEDGE_BLOCK_JOIN(token);
    SELVEDGE_ENSURE("by the pool", 1);
    done = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *child(void *argument) {
    SELVEDGE_ENSURE("by a child", *(int *)argument);
    return NULL;
}

static int lengths(const void *a, size_t a_size, const void *b, size_t b_size) {
    (void)a;
    (void)b;
    return a_size == b_size;
}

static void scalars(void) {
    const long double wide = 0.5L;
    const double numbers[] = {1.5, 2.5};
    SELVEDGE_DETERMINISTIC_BEGIN("scalars");
    SELVEDGE_ASSUME("flag", (bool)1);
    SELVEDGE_ASSUME_STRING("text", "tree");
    SELVEDGE_ENSURE("char", (char)-1);
    SELVEDGE_ENSURE("short", (unsigned short)65535);
    SELVEDGE_ENSURE("long", -5L);
    SELVEDGE_ENSURE("float", 0.25f);
    SELVEDGE_ENSURE("wide", wide);
    SELVEDGE_ENSURE_BY("near", 1.0, SELVEDGE_WITHIN(1e-3));
    SELVEDGE_ENSURE_ARRAY_BY("array", numbers, 2, SELVEDGE_MULTISET);
    SELVEDGE_ENSURE_BYTES_BY("bytes", "ab", 2, SELVEDGE_SAME(lengths));
    SELVEDGE_REGION_END();
}

static void states(void) {
    int count = 1;
    long list[] = {1, 2};
    SELVEDGE_DETERMINISTIC_BEGIN("states");
    SELVEDGE_STATE("count", count);
    SELVEDGE_STATE_ARRAY("list", list, 2);
    count = 2;
    list[1] = 7;
    SELVEDGE_REGION_END();
}

static void large(void) {
    double *numbers = calloc(LARGE, sizeof *numbers);
    SELVEDGE_DETERMINISTIC_BEGIN("large");
    for (int i = 0; i < 3; i++) {
        numbers[LARGE - 1] = i;
        SELVEDGE_ENSURE_ARRAY("numbers", numbers, LARGE);
    }
    SELVEDGE_REGION_END();
    free(numbers);
}

static void threads(pthread_t before) {
    pthread_t started[2];
    int arguments[2] = {10, 20};
    SELVEDGE_DETERMINISTIC_BEGIN("threads");
    for (int i = 0; i < 2; i++)
        pthread_create(&started[i], NULL, child, &arguments[i]);
    pthread_mutex_lock(&lock);
    token = SELVEDGE_BLOCK_TOKEN();
    handed = true;
    pthread_cond_broadcast(&changed);
    while (!done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        pthread_join(started[i], NULL);
    SELVEDGE_REGION_END();
    pthread_join(before, NULL);
}

static void chosen(void) {
    SELVEDGE_DETERMINISTIC_BEGIN("chosen");
    SELVEDGE_ENSURE("numbers", SELVEDGE_CHOOSE(5) * 10 + SELVEDGE_CHOOSE(5));
    SELVEDGE_REGION_END();
}

static void misuse(void) {
    SELVEDGE_ENSURE("outside", 1);
    SELVEDGE_DETERMINISTIC_BEGIN("wrong");
    SELVEDGE_ENSURE("first", 1);
    SELVEDGE_ASSUME("second", 1);
    SELVEDGE_REGION_END();
    SELVEDGE_REGION_END();
    SELVEDGE_DETERMINISTIC_BEGIN("open");
    SELVEDGE_ENSURE("x", 1);
}

int main(int count, char **words) {
    pthread_t before;
    pthread_create(&before, NULL, pool, NULL);
    scalars();
    states();
    large();
    threads(before);
    chosen();
    if (count > 1 && !strcmp(words[1], "misuse"))
        misuse();
    return 0;
}

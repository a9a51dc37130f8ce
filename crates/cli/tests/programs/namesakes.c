/* A list whose order depends on the schedule, compared by two predicates of one name: the one here says that all
 * lists are the same, the one of namesake.c that equal ones are. */
#include <pthread.h>

#include <selvedge.h>

void ensure_exactly(const int *list, int len);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int list[2];
static int len;

static void *add(void *number) {
    pthread_mutex_lock(&lock);
    list[len++] = *(int *)number;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int same(const void *a, size_t a_size, const void *b, size_t b_size) {
    (void)a, (void)a_size, (void)b, (void)b_size;
    return 1;
}

int main(void) {
    pthread_t threads[2];
    int numbers[2] = {3, 7};
    SELVEDGE_DETERMINISTIC_BEGIN("fill");
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    SELVEDGE_ENSURE_ARRAY_BY("any", list, len, SELVEDGE_SAME(same));
    ensure_exactly(list, len);
    SELVEDGE_REGION_END();
    return 0;
}

#include "corpus.h"
#include "../../include/selvedge.h"
// Order through a pipe, told by the header; and a counter that may be wrong on purpose.
int data, statistics, ends[2];
static void *producer(void *arg) {
    data = 1; // race(data)
#ifdef FIXED
    SELVEDGE_HAPPENS_BEFORE(&ends);
    SELVEDGE_IGNORE_BEGIN();
#endif
    statistics++; // race(statistics)
#ifdef FIXED
    SELVEDGE_IGNORE_END();
#endif
    return write(ends[1], "x", 1) == 1 ? arg : NULL;
}
static void *consumer(void *arg) {
    char c;
    SELVEDGE_ATOMIC_BEGIN("take");
    if (read(ends[0], &c, 1) != 1) abort();
    SELVEDGE_REGION_END();
#ifdef FIXED
    SELVEDGE_HAPPENS_AFTER(&ends);
#else
    statistics++; // race(statistics)
#endif
    return data ? arg : NULL; // race(data)
}
int main(void) {
    if (pipe(ends) != 0) return 1;
    pthread_t t = start(producer, NULL);
#ifdef FIXED
    SELVEDGE_IGNORE_BEGIN();
    statistics++;
    SELVEDGE_IGNORE_END();
#endif
    void *seen = consumer(&data);
    pthread_join(t, NULL);
    return seen == NULL && data != 1;
}

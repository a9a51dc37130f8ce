/* Wrong uses, one for each macro; -DMANY=N marks N tasks and -DLONG=N computes for N rounds, which are no wrong uses. */
#include <pthread.h>
#include <selvedge.h>
#include <stdio.h>

int number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(void) {
    pthread_mutex_lock(&lock);
    number = number + 1;
    pthread_mutex_unlock(&lock);
}

static void *inner(void *nothing) {
    SELVEDGE_TASK_BEGIN("inner");
    add();
    SELVEDGE_REGION_END();
    return nothing;
}

static void *work(void *nothing) {
#ifdef NEVER_ENDS
    SELVEDGE_TASK_BEGIN("open");
#endif
#ifdef STRAY_END
    SELVEDGE_REGION_END();
#endif
#ifdef TASK_IN_TASK
    pthread_t thread;
    SELVEDGE_TASK_BEGIN("outer");
    pthread_create(&thread, 0, inner, 0);
    pthread_join(thread, 0);
    SELVEDGE_REGION_END();
#endif
#ifdef MANY
    for (int i = 0; i < MANY / 2; i++) inner(0);
#endif
#ifdef LONG
    static int own[64];
    for (int i = 0; i < LONG; i++) own[i % 64] = own[i % 64] + i;
#endif
#ifdef ENDLESS
    while (1) {
        add();
    }
#endif
    add();
    return nothing;
}

int main(void) {
    pthread_t threads[2];
#ifdef STAR_AROUND_THREADS
    SELVEDGE_STAR_BLOCK("threads")
#endif
    {
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    }
    printf("%d\n", number);
    return 0;
}

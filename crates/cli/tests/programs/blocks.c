/* A sum that two threads add to. With -DWRONG each thread has a lock of its own, so an addition may be lost.
 * `printed` is a race that does not matter to the sum; with -DQUIET it is not there. With -DLATER nothing is
 * ensured, and the locks differ for the input 7 only. With -DCHOICE numbers that are
 * part of the schedule are added. Other options use blocks as they must not. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <selvedge.h>

#ifndef STEP
#define STEP 1
#endif

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
int sum, wanted;
int printed;

static void *add(void *argument) {
    int number = *(int *)argument;
#if defined LATER
    pthread_mutex_t *lock = &locks[wanted == 7 ? number : 0];
#elif defined WRONG
    pthread_mutex_t *lock = &locks[number];
#else
    pthread_mutex_t *lock = &locks[0];
#endif
#ifndef QUIET
    printed = number;
#endif
#ifdef ABANDONED
    SELVEDGE_DETERMINISTIC_BEGIN("add");
    SELVEDGE_ENSURE("number", number);
#endif
    pthread_mutex_lock(lock);
    sum = sum + STEP;
#ifdef CHOICE
    sum = sum + (int)SELVEDGE_CHOOSE(8);
#endif
    pthread_mutex_unlock(lock);
    return NULL;
}

static void solve(int n) {
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    SELVEDGE_DETERMINISTIC_BEGIN("solve");
    SELVEDGE_ASSUME("n", n);
#ifdef LONELY
    SELVEDGE_ASSUME("process", getpid());
#endif
    SELVEDGE_STATE("n", n);
    SELVEDGE_STATE("sum", sum);
    sum = wanted = n;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
#ifdef KILLED
    raise(SIGKILL);
#endif
#if defined SHAPE
    SELVEDGE_ENSURE_ARRAY("sum", &sum, 1);
#elif defined NEAR
    SELVEDGE_ENSURE_BY("sum", sum, SELVEDGE_WITHIN(1));
#elif !defined LATER
    SELVEDGE_ENSURE("sum", sum);
#endif
#ifdef MISUSE
    SELVEDGE_ASSUME("late", n);
#endif
#ifndef OPEN
    SELVEDGE_REGION_END();
#endif
#ifdef STRAY
    SELVEDGE_REGION_END();
#endif
#ifdef OUTSIDE
    SELVEDGE_ENSURE("after", sum);
#endif
}

int main(int count, char **words) {
    solve(count > 1 ? atoi(words[1]) : 10);
#ifdef WRITES
    FILE *file = fopen("result", "w");
    fprintf(file, "%d\n", sum);
    fclose(file);
#else
    printf("%d\n", sum);
#endif
    return 0;
}

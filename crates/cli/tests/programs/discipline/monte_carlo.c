/* Simulation after the MonteCarlo of the thesis: tasks made before the threads start, results of each task on the heap,
   a list of results under a lock, and parameters that all threads read. */
#include <pthread.h>
#include <stdlib.h>

#ifndef TASKS
#define TASKS 12
#define STEPS 16
#endif
enum { THREADS = 3 };

struct task {
    unsigned seed;
    int steps;
};

struct result {
    struct result *next;
    double path;
    int task;
};

static struct task tasks[TASKS];
static double drift, volatility;
static int next_task;
static pthread_mutex_t task_lock = PTHREAD_MUTEX_INITIALIZER;
static struct result *results;
static int finished;
static pthread_mutex_t result_lock = PTHREAD_MUTEX_INITIALIZER;
static double expected;

static int taken(void) {
    pthread_mutex_lock(&task_lock);
    int task = next_task < TASKS ? next_task++ : -1;
    pthread_mutex_unlock(&task_lock);
    return task;
}

static void *simulate(void *unused) {
    for (int number; (number = taken()) >= 0;) {
        struct result *result = malloc(sizeof *result);
        unsigned random = tasks[number].seed;
        result->task = number;
        result->path = 1;
        for (int i = 0; i < tasks[number].steps; i++) {
            random = random * 1103515245 + 12345;
            result->path *= 1 + drift + volatility * ((random >> 16 & 255) / 128.0 - 1);
        }
        pthread_mutex_lock(&result_lock);
        result->next = results;
        results = result;
        finished++;
        pthread_mutex_unlock(&result_lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    drift = 0.01;
    volatility = 0.2;
    for (int i = 0; i < TASKS; i++) {
        tasks[i].seed = (unsigned)i;
        tasks[i].steps = STEPS;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, simulate, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    for (struct result *result = results; result; result = result->next)
        expected += result->path * (result->task >= 0);
    return expected < 0 || finished != TASKS;
}

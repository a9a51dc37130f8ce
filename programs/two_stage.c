// Shape: initialisation in two stages, each under a lock of its own. A reader comes between the stages.
// Sizes: 3 10 20 50 100
// Idea: `twostage_N` of the SCTBench collection (Thomson, Donaldson and Betts, PPoPP 2014).
// Shows: the assertion, if the reader finds the first stage done and the second not.
// Fixed: both stages are one critical section, and so is reading them.
#include "shape.h"

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;
static int first, second;

static void *initialise(void *arg) {
    pthread_mutex_lock(&first_lock);
    first = 1;
#ifndef FIXED
    pthread_mutex_unlock(&first_lock);
#endif
    pthread_mutex_lock(&second_lock);
    second = first + 1;
    pthread_mutex_unlock(&second_lock);
#ifdef FIXED
    pthread_mutex_unlock(&first_lock);
#endif
    return arg;
}

static void *use(void *arg) {
    pthread_mutex_lock(&first_lock);
    int one = first;
#ifndef FIXED
    pthread_mutex_unlock(&first_lock);
#endif
    pthread_mutex_lock(&second_lock);
    int two = second;
    pthread_mutex_unlock(&second_lock);
#ifdef FIXED
    pthread_mutex_unlock(&first_lock);
#endif
    assert(one == 0 || two == one + 1);
    return arg;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    int count = size(argc, argv, 2);
    for (int i = 0; i < count; i++) threads[i] = start(initialise, NULL);
    pthread_t user = start(use, NULL);
    for (int i = 0; i < count; i++) join(threads[i]);
    join(user);
    return 0;
}

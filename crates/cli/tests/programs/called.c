/* Races and a deadlock at places that several calls lead to. */
#include <pthread.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
int total;

#define APART __attribute__((noinline))

APART void add(void) { total++; }

APART void one_of_two(void) { add(); }

APART void level_5(void) {
    one_of_two();
    add();
}

APART void level_4(void) { level_5(); }
APART void level_3(void) { level_4(); }
APART void level_2(void) { level_3(); }
APART void outermost(void) { level_2(); }

APART void lock_both(pthread_mutex_t *a, pthread_mutex_t *b) {
    pthread_mutex_lock(a);
    pthread_mutex_lock(b);
    pthread_mutex_unlock(b);
    pthread_mutex_unlock(a);
}

APART void locks_first(void) { lock_both(&first, &second); }
APART void locks_second(void) { lock_both(&second, &first); }

static void *one(void *arg) {
    outermost();
    locks_first();
    return arg;
}

static void *two(void *arg) {
    outermost();
    locks_second();
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, one, NULL);
    pthread_create(&b, NULL, two, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}

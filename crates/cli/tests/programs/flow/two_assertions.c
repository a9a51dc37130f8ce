/* Two assertions. The first fails if the second task runs first, which a sequential execution shows as well; the second
   fails only if the tasks overlap. */
#include <assert.h>
#include <pthread.h>

int number, first_has_begun;

static void add(void) {
    int old = number;
    number = old + 1;
}

static void *first(void *nothing) {
    first_has_begun = 1;
    add();
    return nothing;
}

static void *second(void *nothing) {
    assert(first_has_begun);
    add();
    return nothing;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(number == 2);
    return 0;
}

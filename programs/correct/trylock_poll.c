// Correct: threads try a lock until they get it.
#include "../shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add(void *arg) {
    for (int i = 0; i < 3; i++) {
        while (pthread_mutex_trylock(&lock) != 0) {
        }
        count++;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) threads[i] = start(add, NULL);
    for (int i = 0; i < 3; i++) join(threads[i]);
    assert(count == 9);
    return 0;
}

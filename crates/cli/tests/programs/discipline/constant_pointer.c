/* A pointer to the first element of an array that the compiler keeps nowhere: debug information gives the address of
   the array as its value, and that must not be taken for the place of the pointer. Clearing the array also writes the
   gap at the end of each element, which belongs to the member in front of it. */
#include <pthread.h>
#include <string.h>

typedef struct {
    unsigned size, used;
    void *slots;
    unsigned count;
} class;

static class classes[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg) {
    pthread_mutex_lock(&lock);
    memset(classes, 0, sizeof classes);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 16; i++) {
        pthread_mutex_lock(&lock);
        class *each = &classes[i];
        each->size = i;
        each->count++;
        each->slots = arg;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    class *first = &classes[0];
    first->used++;
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, threads);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}

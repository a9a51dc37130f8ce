// A shared library with a race in it, for a program that knows nothing of threads.
#include <pthread.h>

int library_shared;

static void *writer(void *unused) {
    library_shared++;
    return unused;
}

void library_work(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, writer, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
}

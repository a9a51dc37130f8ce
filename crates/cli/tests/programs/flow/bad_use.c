/* Wrong uses, one for each macro. */
#include <pthread.h>
#include <selvedge.h>
#include <stdio.h>

int number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *nothing) {
#ifdef ENDLESS
    while (1) {
        pthread_mutex_lock(&lock);
        number = number + 1;
        pthread_mutex_unlock(&lock);
    }
#endif
    pthread_mutex_lock(&lock);
    number = number + 1;
    pthread_mutex_unlock(&lock);
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

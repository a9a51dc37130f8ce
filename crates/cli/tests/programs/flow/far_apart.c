/* Two threads add to a number; between reading and writing it each works for so long that its words are read in between,
   and that it has to give way. -DFIXED holds a lock. */
#include <pthread.h>
#include <stdio.h>

int number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *own) {
    int *work = own;
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    int old = number;
    for (int i = 0; i < 400000; i++) work[i % 64] += i;
    number = old + 1;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return NULL;
}

int main(void) {
    static int work[2][64];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, add, work[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d %d\n", number, work[0][7]);
    return 0;
}

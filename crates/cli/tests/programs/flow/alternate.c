// Two threads write in turns. No order of whole threads shows the same, so no execution has a sequential twin.
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static char text[2 * ROUNDS + 1];

static void *writer(void *own) {
    int me = *(int *)own;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        while (turn % 2 != me)
            pthread_cond_wait(&changed, &lock);
        text[turn] = "ab"[me];
        turn++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, writer, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(text);
    return 0;
}

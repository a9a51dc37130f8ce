// A point whose two coordinates belong together: one thread moves it in one critical section, another
// reads it in two, and may see half of a move. With -DFIXED it reads in one. (The example of Artho, Havelund
// and Biere, "High-level data races", section 2.)
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x, y;
static int seen_x, seen_y;

static void *move(void *arg) {
    pthread_mutex_lock(&lock);
    x++;
    y++;
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *look(void *arg) {
    pthread_mutex_lock(&lock);
    seen_x = x;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    seen_y = y;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t mover, looker;
    pthread_create(&mover, NULL, move, NULL);
    pthread_create(&looker, NULL, look, NULL);
    pthread_join(mover, NULL);
    pthread_join(looker, NULL);
    printf("%d %d\n", seen_x, seen_y);
    return 0;
}

#include "wrappers.h"

static struct counter counter = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int count(int step) {
    enter(&counter);
    counter.value += step;
    if (counter.value < 0) {
#ifdef PLANTED
        leave(&counter);
        counter.value = 0; /* planted */
        return -1;
#else
        counter.value = 0;
        leave(&counter);
        return -1;
#endif
    }
    leave(&counter);
    return 0;
}

static void *work(void *unused) {
    for (int i = 0; i < 8; i++) {
        count(i);
        table_enter();
        table[i]++;
        table_leave();
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}

/* Figure 6.9(b) of Burnim's thesis: every task takes one piece of work and keeps the shortest tour. With -DBUG the
 * comparison and the update are not one step. */
#include <pthread.h>
#include <selvedge.h>

int MinTourLen = 1000;
static int queue[3] = {30, 20, 25}, taken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int recursive_solve(int w) {
    int length = w;
    while (length % 7) length--;
    return length;
}

static void *search(void *nothing) {
    pthread_mutex_lock(&lock);
    int w = queue[taken++];
    pthread_mutex_unlock(&lock);
    int s = recursive_solve(w);
#ifdef BUG
    if (s < MinTourLen) {
        pthread_mutex_lock(&lock);
        MinTourLen = s;
        pthread_mutex_unlock(&lock);
    }
#else
    pthread_mutex_lock(&lock);
    if (s < MinTourLen) MinTourLen = s;
    pthread_mutex_unlock(&lock);
#endif
    return nothing;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, search, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    SELVEDGE_FOCUS(&MinTourLen, sizeof MinTourLen);
    return 0;
}

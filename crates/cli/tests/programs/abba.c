// Two threads take two locks, in different orders unless FIXED.
#include <pthread.h>

static pthread_mutex_t front = PTHREAD_MUTEX_INITIALIZER, back = PTHREAD_MUTEX_INITIALIZER;
static int moved;

static void *there(void *arg) {
    pthread_mutex_lock(&front);
    pthread_mutex_lock(&back);
    moved++;
    pthread_mutex_unlock(&back);
    pthread_mutex_unlock(&front);
    return arg;
}

static void *back_again(void *arg) {
#ifdef FIXED
    return there(arg);
#endif
    pthread_mutex_lock(&back);
    pthread_mutex_lock(&front);
    moved--;
    pthread_mutex_unlock(&front);
    pthread_mutex_unlock(&back);
    return arg;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, there, 0);
    pthread_create(&b, 0, back_again, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}

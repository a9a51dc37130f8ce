/* A race that every run has. */
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int x;
static void *f(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    x++;
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) {
    pthread_t a, b;
    (void)m;
    pthread_create(&a, NULL, f, NULL);
    pthread_create(&b, NULL, f, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}

/* Goes on in another process, in which threads are joined. */
#include <pthread.h>
#include <unistd.h>
static void *f(void *arg) { return arg; }
int main(void) {
    if (daemon(1, 0) != 0) return 1;
    pthread_t t;
    pthread_create(&t, NULL, f, NULL);
    pthread_join(t, NULL);
    sleep(2);
    return 0;
}

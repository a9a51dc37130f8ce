// Races, then kills itself as the out-of-memory killer would.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
int x;
static void *f(void *arg) { x++; return arg; }
int main(void) {
    pthread_t t;
    pthread_create(&t, NULL, f, NULL);
    x++;
    pthread_join(t, NULL);
    kill(getpid(), SIGKILL);
    pause();
    return 0;
}

// Forks while threads run; the child executes another program.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int stop;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
long n;
static void *f(void *arg) {
    for (;;) {
        pthread_mutex_lock(&m);
        n++;
        int end = stop;
        pthread_mutex_unlock(&m);
        if (end) return arg;
    }
}
int main(void) {
    pthread_t t;
    int status, bad = 0;
    pthread_create(&t, NULL, f, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        waitpid(child, &status, 0);
        bad |= status;
    }
    pthread_mutex_lock(&m);
    stop = 1;
    pthread_mutex_unlock(&m);
    pthread_join(t, NULL);
    return bad != 0;
}

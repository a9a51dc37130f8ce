// Uses what is not in the program's hand: the clock, random numbers, a child process, a signal, a pipe.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static volatile sig_atomic_t caught;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_signal(int number) { caught = number; }

static void *write_late(void *arg) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    if (write(ends[1], "x", 1) != 1)
        abort();
    return arg;
}

int main(void) {
    struct timespec now;
    unsigned random = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    if (getrandom(&random, sizeof random, 0) != sizeof random || pipe(ends) != 0)
        return 2;
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(&lock);
        _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    pthread_t writer;
    pthread_create(&writer, 0, write_late, 0);
    char c = 0;
    if (read(ends[0], &c, 1) != 1)
        return 3;
    pthread_join(writer, 0);
    printf("%ld %u %d %d %c\n", (long)now.tv_sec, random, caught == SIGUSR1, WEXITSTATUS(status), c);
    return 0;
}

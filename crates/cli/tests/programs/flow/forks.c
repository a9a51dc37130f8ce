/* A process that the program starts runs beside it, and says nothing of its own data flow. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int values[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *nothing) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 256; i++) values[i] += i;
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    int go[2];
    char byte = 0;
    if (pipe(go) != 0) return 1;
    pid_t child = fork();
    if (child == 0) {
        if (read(go[0], &byte, 1) != 1) _exit(1);
        for (int round = 0; round < 100; round++) add(NULL);
        _exit(0);
    }
    for (int i = 0; i < 256; i++) values[i] = i;
    if (write(go[1], &byte, 1) != 1) return 1;
    waitpid(child, NULL, 0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", values[255]);
    return 0;
}

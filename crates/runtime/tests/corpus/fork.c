#include "corpus.h"
#include <sys/wait.h>
// Parent and child have memory of their own.
int x;
static void *f(void *arg) {
    x++; // race(x)
    return arg;
}
int main(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        x++;
        _exit(x == 1 ? 0 : 1);
    }
    x += 5;
    waitpid(child, &status, 0);
    pthread_t t = start(f, NULL);
#ifndef FIXED
    x++; // race(x)
#endif
    pthread_join(t, NULL);
    return WEXITSTATUS(status);
}

#include "corpus.h"
#include <sys/wait.h>
// A child has only the thread that forked. The C library may know its new threads by the names of threads
// that the parent has, and they are joined all the same.
int x;
static int never[2];
static void *sleeps(void *arg) {
    char c;
    return read(never[0], &c, 1) == 1 ? NULL : arg;
}
static void *f(void *arg) {
    x++; // race(x)
    return arg;
}
static int in_child(int depth) {
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 20; i++) {
            pthread_t a = start(sleeps + 0, NULL), b = start(f, NULL);
            pthread_join(b, NULL);
            pthread_cancel(a);
            pthread_join(a, NULL);
        }
        _exit(depth > 0 ? in_child(depth - 1) : x != 20);
    }
    int status;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
int main(void) {
    if (pipe(never) != 0) return 1;
    pthread_t s[3];
    for (int i = 0; i < 3; i++) s[i] = start(sleeps, NULL);
    int failed = in_child(0);
    pthread_t t = start(f, NULL);
#ifndef FIXED
    x++; // race(x)
#endif
    pthread_join(t, NULL);
    close(never[1]);
    for (int i = 0; i < 3; i++) pthread_join(s[i], NULL);
    return failed;
}

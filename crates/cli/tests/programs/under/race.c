// Two threads race on `shared`; what the program does before that is its argument.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int shared;
static void *works(void *arg) {
    shared++;
    return arg;
}
static void *returns(void *arg) { return arg; }
static void one_after_the_other(int n) {
    for (int i = 0; i < n; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, returns, NULL) != 0) abort();
        pthread_join(t, NULL);
    }
}
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void *passes(void *arg) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return arg;
}
static void at_once(int n) {
    pthread_t *all = malloc(n * sizeof *all);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < n; i++)
        if (pthread_create(&all[i], &small, passes, NULL) != 0) abort();
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < n; i++) pthread_join(all[i], NULL);
    free(all);
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "sequence") == 0) one_after_the_other(10000);
    if (strcmp(how, "crowd") == 0) at_once(2000);
    if (strcmp(how, "close") == 0)
        for (int fd = 0; fd < 4096; fd++) close(fd);
    if (strcmp(how, "vfork") == 0) {
        int status = 1;
        pid_t child = vfork();
        if (child == 0) {
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        if (waitpid(child, &status, 0) != child || status != 0) return 7;
    }
    pthread_t a, b;
    pthread_create(&a, NULL, works, NULL);
    pthread_create(&b, NULL, works, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 5;
}

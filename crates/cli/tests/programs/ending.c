// Ends in the way that its argument says, after a race if it is asked for one.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int shared;

static void *writer(void *unused) {
    shared++;
    return unused;
}

static void race(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, writer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strstr(how, "race"))
        race();
    puts("running");
    fflush(stdout);
    if (strstr(how, "wait"))
        getchar();
    if (strstr(how, "pause"))
        for (;;)
            pause();
    if (strstr(how, "crash"))
        raise(SIGSEGV);
    if (strstr(how, "exec"))
        execlp("echo", "echo", "another program", (char *)NULL);
    return strstr(how, "five") ? 5 : 0;
}

// A race that every run shows, and then a program that does not end by itself.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

int shared;

static void *increments(void *arg) {
    shared++;
    return arg;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, increments, NULL);
    pthread_create(&other, NULL, increments, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    close(open("raced", O_CREAT | O_WRONLY, 0600));
    for (;;) pause();
}

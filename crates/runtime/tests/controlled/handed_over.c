// Data goes to another thread with a byte through a pipe; unless FIXED, it is looked at before.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static int ends[2];
int data;

static void *producer(void *arg) {
    data = 1;
    return write(ends[1], "x", 1) == 1 ? arg : 0;
}

int main(void) {
    pthread_t thread;
    char byte;
    int seen = 0;
    if (pipe2(ends, O_NONBLOCK)) return 1;
    pthread_create(&thread, 0, producer, 0);
#ifndef FIXED
    seen += data;
#endif
    while (read(ends[0], &byte, 1) != 1) sched_yield();
    seen += data;
    pthread_join(thread, 0);
    return seen > 0 ? 0 : 1;
}

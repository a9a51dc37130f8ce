#include "corpus.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
int data, task;
static int set, counter;
static void *producer(void *arg) {
    task = 1; // race(task)
#ifdef FIXED
    // The registration says what to do when the counter is ready.
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &task};
    if (epoll_ctl(set, EPOLL_CTL_ADD, counter, &event) != 0) abort();
#endif
    data = 1; // race(data)
    uint64_t one = 1;
    if (write(counter, &one, sizeof one) != sizeof one) abort();
    return arg;
}
static void *consumer(void *arg) {
#ifdef FIXED
    struct epoll_event event;
    while (epoll_wait(set, &event, 1, -1) != 1) {}
    *(int *)event.data.ptr = 2;
    uint64_t got;
    if (read(counter, &got, sizeof got) != sizeof got) abort();
#else
    task = 2; // race(task)
#endif
    data = 2; // race(data)
    return arg;
}
int main(void) {
    set = epoll_create1(0);
    counter = eventfd(0, 0);
    both(producer, consumer);
    return 0;
}

#include "corpus.h"
#include <poll.h>
#include <sys/socket.h>
int before;
static int ends[2];
static void *producer(void *arg) {
    before = 1; // race(before)
    if (send(ends[1], "x", 1, 0) != 1) abort();
    return arg;
}
static void *consumer(void *arg) {
#ifdef FIXED
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    if (poll(&ready, 1, -1) != 1) abort();
    before = 2;
    char c;
    if (recv(ends[0], &c, 1, 0) != 1) abort();
#endif
    before = 3; // race(before)
    return arg;
}
int main(void) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    both(producer, consumer);
    return 0;
}

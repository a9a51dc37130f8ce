#include "corpus.h"
#include <sys/uio.h>
// The kernel reads and writes the buffers, and does it for the thread that called.
char incoming[8], outgoing[8], parts[2][4];
static int ends[2], others[2];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *calls(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    if (write(others[1], outgoing, 8) != 8) abort(); // race(outgoing)
    if (read(ends[0], incoming, 4) != 4) abort(); // race(incoming)
    struct iovec vector[2] = {{parts[0], 2}, {parts[1], 2}};
    if (readv(ends[0], vector, 2) != 4) abort(); // race(parts)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
static void *touches(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    outgoing[7] = 1; // race(outgoing)
    incoming[3] = 1; // race(incoming)
    incoming[4] = 1;
    parts[1][1] = 1; // race(parts)
    parts[1][2] = 1;
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) {
    if (pipe(ends) != 0 || pipe(others) != 0) abort();
    if (write(ends[1], "abcdefgh", 8) != 8) abort();
    both(calls, touches);
    return 0;
}

#include "corpus.h"
int data;
static int ends[2];
static void *producer(void *arg) {
    data = 1; // race(data)
    if (write(ends[1], "x", 1) != 1) abort();
    return arg;
}
static void *consumer(void *arg) {
#ifdef FIXED
    char c;
    if (read(ends[0], &c, 1) != 1) abort();
#endif
    data = 2; // race(data)
    return arg;
}
int main(void) { if (pipe(ends) != 0) abort(); both(producer, consumer); return 0; }

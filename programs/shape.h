// Shared by the bundled programs. Each of them is a pair: as it stands it has the bug that its head
// describes, which shows itself (a failed assertion, a crash, a hang); with -DFIXED it has none. Nothing
// sleeps: a bug is rare because its window is a few instructions wide and the threads usually come to it
// one after the other.
#ifndef SHAPE_H
#define SHAPE_H
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

typedef void *(*body)(void *);

// What a real program does in between: computes for some microseconds.
static inline unsigned work(unsigned rounds) {
    unsigned hash = 2166136261u;
    for (unsigned i = 0; i < rounds * 300; i++) {
        hash = (hash ^ i) * 16777619u;
        __asm__ volatile("" : "+r"(hash));
    }
    return hash;
}

// Creates a thread and goes on with other work, so that threads rarely begin at the same time.
static inline pthread_t start(body f, void *arg) {
    pthread_t t;
    if (pthread_create(&t, NULL, f, arg) != 0) abort();
    work(250);
    return t;
}

// Where threads in a program of any size are kept.
enum { MOST = 128 };

// The size that the program was started with, or the usual one.
static inline int size(int argc, char **argv, int usual) {
    int wanted = argc > 1 ? atoi(argv[1]) : usual;
    return wanted < 1 ? 1 : wanted > MOST ? MOST : wanted;
}

static inline void join(pthread_t t) {
    if (pthread_join(t, NULL) != 0) abort();
}

// What a real program does besides: so many lines into a log that all threads share. Each is a place
// where threads can change, so a schedule has to be right in more of them.
static inline void note(int lines) {
    static pthread_mutex_t log = PTHREAD_MUTEX_INITIALIZER;
    static int written;
    for (int i = 0; i < lines; i++) {
        pthread_mutex_lock(&log);
        written++;
        pthread_mutex_unlock(&log);
    }
}
#endif

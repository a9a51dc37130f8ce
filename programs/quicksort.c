// Shape: quicksort by several threads, with a lost condition. An idle thread looks for work and waits, with
// the lock given up in between.
// Sizes: 3 10 20 50 100
// Idea: the pool of threads in a parallel quicksort, as in BSD's qsort_mt, which SCTBench has.
// Shows: a hang, if the last piece is finished between a thread's look and its wait.
// Fixed: looks and waits with the lock held.
#include "shape.h"

enum { LENGTH = 12 };
struct piece {
    int from, to;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int values[LENGTH];
static struct piece open_pieces[LENGTH];
static int open_count, unfinished;

static void add(int from, int to) {
    open_pieces[open_count++] = (struct piece){from, to};
    unfinished++;
    pthread_cond_signal(&changed);
}

// Takes a piece, with the lock held; false if all are finished.
static int take(struct piece *piece) {
    while (open_count == 0) {
        if (unfinished == 0) return 0;
#ifndef FIXED
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
#endif
        pthread_cond_wait(&changed, &lock);
    }
    *piece = open_pieces[--open_count];
    return 1;
}

static int split(int from, int to) {
    int pivot = values[to - 1], at = from;
    for (int i = from; i < to; i++) {
        int value = values[i];
        if (value < pivot || i == to - 1) {
            values[i] = values[at];
            values[at++] = value;
        }
    }
    return at - 1;
}

static void *sort(void *arg) {
    struct piece piece;
    pthread_mutex_lock(&lock);
    while (take(&piece)) {
        pthread_mutex_unlock(&lock);
        int middle = split(piece.from, piece.to);
        pthread_mutex_lock(&lock);
        if (middle - piece.from > 1) add(piece.from, middle);
        if (piece.to - middle > 2) add(middle + 1, piece.to);
        if (--unfinished == 0) pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    int count = size(argc, argv, 2);
    for (int i = 0; i < LENGTH; i++) values[i] = i * 7 % LENGTH;
    add(0, LENGTH);
    for (int i = 0; i < count; i++) threads[i] = start(sort, NULL);
    for (int i = 0; i < count; i++) join(threads[i]);
    for (int i = 1; i < LENGTH; i++) assert(values[i - 1] <= values[i]);
    return 0;
}

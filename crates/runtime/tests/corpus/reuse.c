#include "corpus.h"
// The allocator hands a freed block to another thread without any order that can be seen; that is no
// race. Using one block from two threads is.
int *both_use;
static void *f(void *arg) {
    for (int i = 0; i < 1000; i++) {
        int *p = malloc(40);
        for (int k = 0; k < 10; k++) p[k] = i;
        p = realloc(p, 400);
        p[99] = i;
        free(p);
    }
#ifndef FIXED
    *both_use = 1; // race(block)
#endif
    return arg;
}
int main(void) {
    both_use = calloc(1, sizeof *both_use);
    both(f, f);
    free(both_use);
    return 0;
}

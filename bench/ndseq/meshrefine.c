// Refines a mesh, here a ring of cells with sizes: a task takes a bad cell and optimistically computes how to split it
// from the sizes of its neighbours; it commits if none of the three has changed meanwhile, and tries again otherwise.
// The choice of the cell and the attempt to refine it are both optimistic.
#include "../noninterference/kernel.h"
#include <selvedge.h>

#ifndef STAR
#undef SELVEDGE_STAR_BLOCK
#define SELVEDGE_STAR_BLOCK(name) if (1)
#endif

#define CELLS 6
#define TASKS 3

static int size[CELLS] = {9, 4, 8, 3, 7, 2}, stamp[CELLS], refined[CELLS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct seen {
    int cell, stamps[3], sizes[3];
};

static void look(struct seen *s) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 3; i++) {
        int at = (s->cell + CELLS - 1 + i) % CELLS;
        s->stamps[i] = stamp[at];
        s->sizes[i] = size[at];
    }
    pthread_mutex_unlock(&lock);
}

static int commit(const struct seen *s, int left, int right) {
    int same = 1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 3; i++)
        same = same && stamp[(s->cell + CELLS - 1 + i) % CELLS] == s->stamps[i];
    if (same) {
        size[s->cell] = left;
        size[(s->cell + 1) % CELLS] += right;
        stamp[s->cell] = stamp[s->cell] + 1;
        stamp[(s->cell + 1) % CELLS] = stamp[(s->cell + 1) % CELLS] + 1;
    }
    pthread_mutex_unlock(&lock);
    return same;
}

static int claim(int cell) {
    pthread_mutex_lock(&lock);
    int free = !refined[cell];
    if (free)
        refined[cell] = 1;
    pthread_mutex_unlock(&lock);
    return free;
}

static int choose(void) {
    int cell = 0;
    while (1) {
        SELVEDGE_STAR_BLOCK("choose") {
            if (!refined[cell] && claim(cell))
                return cell;
        }
        cell = (cell + 2) % CELLS;
    }
}

static void refine(int cell) {
    int done = 0;
    while (!done) {
        SELVEDGE_STAR_BLOCK("refine") {
            struct seen s;
            s.cell = cell;
            look(&s);
            int left = (s.sizes[0] + 2 * s.sizes[1]) / 4;
            if (commit(&s, left, s.sizes[1] - left + s.sizes[2] / 4))
                done = 1;
        }
    }
}

static void *work(void *nothing) {
    refine(choose());
    return nothing;
}

int main(void) {
    pthread_t threads[TASKS];
    for (int i = 0; i < TASKS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < TASKS; i++)
        pthread_join(threads[i], NULL);
    printf("meshrefine");
    for (int i = 0; i < CELLS; i++)
        printf(" %d", size[i]);
    printf("\n");
    return 0;
}

// Shape: ABA in a lock-free stack. A node comes back to the top while a slow pop still trusts its link.
// Idea: Treiber's stack (IBM, 1986) without the counted pointers that its description asks for.
// Shows: the assertion, if one pop is overtaken by pop, pop and push of the first node.
// Fixed: the top carries a count of its changes.
#include "shape.h"
#include <stdatomic.h>

enum { NODES = 3, NONE = 0xffff };
static atomic_uint top;
static atomic_uint next[NODES];
static atomic_int owner[NODES];

#ifdef FIXED
#define COUNTED(old, node) (((old) & 0xffff0000u) + 0x10000u + (node))
#else
#define COUNTED(old, node) (node)
#endif

static void push(unsigned node) {
    unsigned old = atomic_load(&top);
    do atomic_store(&next[node], old & 0xffff);
    while (!atomic_compare_exchange_strong(&top, &old, COUNTED(old, node)));
}

static unsigned pop(void) {
    unsigned old = atomic_load(&top);
    for (;;) {
        if ((old & 0xffff) == NONE) return NONE;
        unsigned then = atomic_load(&next[old & 0xffff]);
        if (atomic_compare_exchange_strong(&top, &old, COUNTED(old, then))) return old & 0xffff;
    }
}

static void take(unsigned node) { assert(atomic_fetch_add(&owner[node], 1) == 0); }

static void *slow(void *arg) {
    for (int i = 0; i < 2; i++) {
        unsigned node = pop();
        if (node != NONE) take(node);
    }
    return arg;
}

static void *fast(void *arg) {
    unsigned first = pop(), second = pop();
    if (second != NONE) take(second);
    if (first != NONE) push(first);
    return arg;
}

int main(void) {
    atomic_store(&top, NONE);
    for (unsigned i = 0; i < NODES; i++) push(i);
    pthread_t a = start(slow, NULL), b = start(fast, NULL);
    join(a);
    join(b);
    return 0;
}

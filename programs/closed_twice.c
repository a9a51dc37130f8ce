// Shape: double free. Threads that give up an object look whether it is gone already.
// Sizes: 3 10 20 50 100
// Idea: the shutdown paths of clients and servers that both sides may take.
// Shows: a double free, if two threads look before either of them has marked the object as gone.
// Fixed: looking and marking is one atomic step.
#include "shape.h"
#include <stdatomic.h>

static _Atomic(int *) object;

static void *give_up(void *arg) {
#ifdef FIXED
    free(atomic_exchange(&object, NULL));
#else
    int *mine = atomic_load(&object);
    if (mine) {
        atomic_store(&object, NULL);
        free(mine);
    }
#endif
    return arg;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    int count = size(argc, argv, 2);
    atomic_store(&object, malloc(64));
    for (int i = 0; i < count; i++) threads[i] = start(give_up, NULL);
    for (int i = 0; i < count; i++) join(threads[i]);
    return 0;
}

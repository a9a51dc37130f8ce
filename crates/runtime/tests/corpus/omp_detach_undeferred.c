// The thread that makes an undeferred detached task goes on when its event was fulfilled, by another task.
// gcc only: LLVM's library (19) goes on at once, so that the fixed program has the race there, too.
#include <stdint.h>
#include "omp_corpus.h"
static atomic_uintptr_t handle;
static void fulfill(void) {
    omp_fulfill_event((omp_event_handle_t)atomic_load_explicit(&handle, memory_order_relaxed));
}
int main(void) {
    int x = 0, y = 0;
    omp_event_handle_t event;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task shared(x)
        {
            wait_for(1);
#ifdef FIXED
            x++;
            fulfill();
#else
            fulfill();
            x++; // race(x)
            is_done();
#endif
        }
#pragma omp task detach(event) if (0) shared(y)
        {
            y++;
            atomic_store_explicit(&handle, (uintptr_t)event, memory_order_relaxed);
            is_done();
        }
#ifndef FIXED
        wait_for(2);
#endif
        x++; // race(x)
    }
    printf("%d\n", x + y);
    return 0;
}

// The event of a detached task is fulfilled while the task still runs.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0;
    omp_event_handle_t event;
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp task detach(event) shared(x)
        {
            wait_for(1);
            x++; // race(x)
            is_done();
        }
#pragma omp task shared(y) firstprivate(event)
        {
            y++; // race(y)
            omp_fulfill_event(event);
            is_done();
        }
        wait_for(2);
#ifdef FIXED
#pragma omp taskwait
#endif
        x++; // race(x)
        y++; // race(y)
    }
    printf("%d\n", x + y);
    return 0;
}

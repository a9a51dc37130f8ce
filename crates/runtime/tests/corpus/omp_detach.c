// A detached task has ended when its event was fulfilled, which another thread may do later: what comes after
// the task comes after that as well.
#include "omp_corpus.h"
int main(void) {
    int x = 0, y = 0, z = 0;
    omp_event_handle_t event;
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp task detach(event) depend(out : x) shared(x)
        {
            x++;
            is_done();
        }
        wait_for(1);
#pragma omp task shared(y) firstprivate(event)
        {
            y++; // race(y)
            omp_fulfill_event(event);
            is_done();
            meet(2);
        }
        wait_for(2);
#ifdef FIXED
#pragma omp task depend(in : x) shared(x, y, z)
#else
#pragma omp task depend(in : z) shared(x, y, z)
#endif
        {
            meet(2);
            y++; // race(y)
            is_done();
        }
        wait_for(3);
    }
    printf("%d\n", x + y + z);
    return 0;
}

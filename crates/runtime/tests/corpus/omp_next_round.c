// A task that is made after a barrier is not ordered before what others do after the same barrier.
#include "omp_corpus.h"
static atomic_int taken;
int main(void) {
    int x = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp barrier
#pragma omp masked
        {
#pragma omp task shared(x)
            {
                meet(2);
                x++; // race(x)
            }
#ifdef FIXED
#pragma omp taskwait
#endif
        }
#ifdef FIXED
#pragma omp barrier
#endif
        // A thread that is still in the barrier may have got the task, so whichever other one comes first does this.
        if (omp_get_thread_num() != 0
            && atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed) == 0) {
            meet(2);
            x++; // race(x)
        }
    }
    printf("%d\n", x);
    return 0;
}

// Tasks of a group that is cancelled are not run; those that run are waited for.
#include <stdlib.h>
#include "omp_corpus.h"
// The library looks at its environment when it is first used.
__attribute__((constructor)) static void allow(void) { setenv("OMP_CANCELLATION", "true", 1); }
int main(void) {
    int x = 0, y = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp taskgroup
        {
#pragma omp task shared(x)
            {
                x++;
#pragma omp cancel taskgroup
                x++;
            }
            for (int i = 0; i < 8; i++) {
#pragma omp task shared(y)
                {
#pragma omp cancellation point taskgroup
#pragma omp atomic
                    y++;
                }
            }
        }
#pragma omp task shared(x)
        {
            x++; // race(x)
            is_done();
        }
        wait_for(1);
#ifdef FIXED
#pragma omp taskwait
#endif
        x++; // race(x)
    }
    printf("%d\n", x + y);
    return 0;
}

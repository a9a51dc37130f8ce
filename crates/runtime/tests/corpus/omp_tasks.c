// Built with clang and its OpenMP: tasks, taskwait, taskgroup, dependences. Where they race, others run
// them: who made them waits, without saying so, until they have been run.
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
int made, in_group, passed, seen;
static atomic_int done;
static void is_done(void) { atomic_fetch_add_explicit(&done, 1, memory_order_relaxed); }
#ifndef FIXED
static void wait_for(int n) {
    while (atomic_load_explicit(&done, memory_order_relaxed) < n) sched_yield();
}
#endif
int main(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp task
        {
            made = 1; // race(made)
            is_done();
        }
#ifdef FIXED
#pragma omp taskwait
#else
        wait_for(1);
#endif
        made++; // race(made)
#ifdef FIXED
#pragma omp taskgroup
#endif
        {
#pragma omp task
            {
                in_group = 1; // race(in_group)
                is_done();
            }
        }
#ifndef FIXED
        wait_for(2);
#endif
        in_group++; // race(in_group)
#ifdef FIXED
#pragma omp task depend(out : passed)
        passed = 1;
#pragma omp task depend(in : passed)
        seen = passed;
#else
#pragma omp task
        {
            is_done();
            wait_for(4);
            passed = 1; // race(passed)
        }
#pragma omp task
        {
            is_done();
            wait_for(4);
            seen = passed; // race(passed)
        }
        wait_for(4);
#endif
    }
    printf("%d\n", made + in_group + seen);
    return 0;
}

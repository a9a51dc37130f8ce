// Threads of OpenMP are started once and work in many blocks. WRONG: the last block ensures what it is given;
// OUTSIDE: a team without a block ensures something.
#include <omp.h>
#include <selvedge.h>
#include <stdlib.h>

static void part(int number) { SELVEDGE_ENSURE("part", number); }

static void team(int threads, int number) {
#pragma omp parallel num_threads(threads)
    part(number + omp_get_thread_num());
}

int main(int argc, char **argv) {
    int given = argc > 1 ? atoi(argv[1]) : 0;
    (void)given;
    omp_set_max_active_levels(2);
    SELVEDGE_DETERMINISTIC_BEGIN("first");
    team(4, 10);
    SELVEDGE_REGION_END();
    SELVEDGE_DETERMINISTIC_BEGIN("second");
    team(4, 20);
    SELVEDGE_REGION_END();
#pragma omp parallel num_threads(3)
    {
        // No block, and no value.
    }
    // A thread of a team begins a team of its own, in the same block, and is in the block after that.
    SELVEDGE_DETERMINISTIC_BEGIN("nested");
#pragma omp parallel num_threads(2)
    {
        int own = omp_get_thread_num() * 100;
        if (own) team(2, own);
#ifdef WRONG
        own += given;
#endif
        part(own);
    }
    SELVEDGE_REGION_END();
#ifdef OUTSIDE
#pragma omp parallel num_threads(4)
    if (omp_get_thread_num() == 3) SELVEDGE_ENSURE("after", 1);
#endif
    return 0;
}

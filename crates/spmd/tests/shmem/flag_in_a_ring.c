// ranks 3
// A flag goes round: each rank puts it to the next one when it has it, and takes it down. What was waited for has arrived.
#include "corpus.h"

static void body(void) {
    int next = (me + 1) % size;
    for (int round = 1; round <= 3; round++) {
        if (me != 0 || round > 1)
            shmem_int_wait_until(&flag, SHMEM_CMP_EQ, me == 0 ? round - 1 : round);
#ifdef FIXED
        flag = 0;
#endif
        shmem_int_put(&flag, &round, 1, next); // race(a)
#ifndef FIXED
        if (me == 0 && round == 1)
            shmem_int_put(&flag, &round, 1, next); // race(a)
#endif
    }
    shmem_barrier_all();
}

// ranks 3
// The target may load after it has waited.
#include "corpus.h"

static MPI_Group only(int a, int b) {
    MPI_Group world, group;
    int ranks[2] = {a, b};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, a == b ? 1 : 2, ranks, &group);
    return group;
}

static void body(void) {
    if (rank == 0) {
        MPI_Win_start(only(1, 1), 0, win);
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
        MPI_Win_complete(win);
    }
    if (rank == 1) {
        MPI_Win_post(only(0, 0), 0, win);
#ifdef FIXED
        MPI_Win_wait(win);
#endif
        use(mem[2]); // race(a)
#ifndef FIXED
        MPI_Win_wait(win);
#endif
    }
}

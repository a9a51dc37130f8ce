// ranks 3
// Post and start do not order the origins.
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
    if (rank == 2) {
        MPI_Win_start(only(1, 1), 0, win);
#ifdef FIXED
        MPI_Put(&two, 1, MPI_INT, 1, 3, 1, MPI_INT, win);
#else
        MPI_Put(&two, 1, MPI_INT, 1, 2, 1, MPI_INT, win); // race(a)
#endif
        MPI_Win_complete(win);
    }
    if (rank == 1) {
        MPI_Win_post(only(0, 2), 0, win);
        MPI_Win_wait(win);
    }
}

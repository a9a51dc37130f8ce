// ranks 3
// Memory that was attached to a dynamic window.
#include "corpus.h"

static int attached[8];

static void body(void) {
    MPI_Win dynamic;
    MPI_Aint at;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_attach(dynamic, attached, sizeof attached);
    MPI_Get_address(&attached[5], &at);
    MPI_Bcast(&at, 1, MPI_AINT, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, dynamic);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT, 1, at, 1, MPI_INT, dynamic); // race(a)
        MPI_Win_flush(1, dynamic);
    }
#ifdef FIXED
    barrier();
#endif
    if (rank == 1)
        use(attached[5]); // race(a)
    MPI_Win_unlock_all(dynamic);
    barrier();
    MPI_Win_detach(dynamic, attached);
    MPI_Win_free(&dynamic);
}

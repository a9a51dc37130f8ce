// ranks 3
// Loads and stores of different ranks to a shared window.
#include "corpus.h"

static void body(void) {
    MPI_Win shared;
    int *own, *first, unit;
    MPI_Aint len;
    MPI_Win_allocate_shared(sizeof(int) * 8, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &shared);
    MPI_Win_shared_query(shared, 0, &len, &unit, &first);
    MPI_Win_lock_all(0, shared);
    if (rank == 1)
        first[3] = 4; // race(a)
#ifdef FIXED
    MPI_Win_sync(shared);
    barrier();
#endif
    if (rank == 2)
        use(first[3]); // race(a)
    MPI_Win_unlock_all(shared);
    MPI_Win_free(&shared);
}

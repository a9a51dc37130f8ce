// ranks 3
// A window of a static array.
#include "corpus.h"

int table[8];

static void body(void) {
    MPI_Win of_table;
    MPI_Win_create(table, sizeof table, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &of_table);
    MPI_Win_fence(0, of_table);
    if (rank == 0)
        MPI_Get(out, 4, MPI_INT, 1, 2, 4, MPI_INT, of_table); // race(a)
#ifdef FIXED
    MPI_Win_fence(0, of_table);
#endif
    if (rank == 1)
        table[4] = 1; // race(a)
    MPI_Win_fence(0, of_table);
    MPI_Win_free(&of_table);
}

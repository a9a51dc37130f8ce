// ranks 3
// A strided put leaves the gaps alone.
#include "corpus.h"

static void body(void) {
    MPI_Win_lock_all(0, win);
    MPI_Datatype every_third;
    int values[4] = {1, 2, 3, 4};
    MPI_Type_vector(4, 1, 3, MPI_INT, &every_third);
    MPI_Type_commit(&every_third);
    if (rank == 0)
        MPI_Put(values, 4, MPI_INT, 1, 0, 1, every_third, win); // race(a)
    if (rank == 1)
#ifdef FIXED
        use(mem[5]);
#else
        use(mem[6]); // race(a)
#endif
    MPI_Type_free(&every_third);
    MPI_Win_unlock_all(win);
}

// ranks 4
// Random read, modify and write of a distributed table.
#include "kernel.h"

#define WORDS 16

static int kernel(void) {
    share(WORDS);
    for (int i = 0; i < 100 * scale; i++) {
        unsigned long r = next_random();
        int owner = (int)(r % (unsigned long)size);
        long at = (long)(r >> 8) % WORDS, value;
        at = at < 0 ? -at : at;
        GET(&value, owner, at); // race(read and write)
        MPI_Win_flush(owner, win);
        value ^= (long)r;
        PUT(&value, owner, at); // race(read and write) race(two writes)
        MPI_Win_flush(owner, win);
    }
    barrier();
    return 1;
}

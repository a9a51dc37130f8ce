// ranks 4
// FT 2.4: all ranks set a sum to 0 at the same time.
#include "kernel.h"

enum { SUM, WORDS };

static int kernel(void) {
    share(WORDS);
    for (int step = 0; step < scale; step++) {
        PUT(&zero, 0, SUM); // race(initialisation) benign
        barrier();
        atomic_add(rank + 1, 0, SUM);
        barrier();
        if (rank == 0 && mem[SUM] != (long)size * (size + 1) / 2)
            return 0;
        barrier();
    }
    return 1;
}

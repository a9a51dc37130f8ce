// Copies of a few bytes from any place, as compressors make them: each thread hashes every eight bytes of a buffer of its own.
#include "common.h"
enum { SIZE = 1 << 16 };
static int rounds;
static unsigned char text[THREADS][SIZE + 8];
static uint64_t sums[THREADS];
static void *work(void *id) {
    unsigned char *bytes = text[(intptr_t)id];
    for (int i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZE; i++) {
            uint64_t eight;
            uint32_t four;
            memcpy(&eight, bytes + i, 8);
            memcpy(&four, bytes + (eight & (SIZE - 1)), 4);
            sum = sum * 0x9e3779b97f4a7c15u + four;
        }
    }
    sums[(intptr_t)id] = sum;
    return NULL;
}
int main(int argc, char **argv) {
    rounds = scale(argc, argv, 100);
    run_threads();
    printf("%llx\n", (unsigned long long)(sums[0] ^ sums[1]));
}

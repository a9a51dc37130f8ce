// Finds the key of a known text by trying all keys of which a part is given; every thread has its own keys to try.
#include "../noninterference/kernel.h"

#define BITS SIZED(4, 22)

static uint32_t given = 0x5eedu << 8, plain = 0x01234567u, coded, key;

static uint32_t encode(uint32_t text, uint32_t with) {
    for (int round = 0; round < 16; round++) {
        text = (text ^ with) * 2654435761u;
        text ^= text >> 15;
        with = with << 7 | with >> 25;
    }
    return text;
}

static void *search_part(void *arg) {
    struct part *p = arg;
    uint32_t keys = 1u << BITS;
    for (uint32_t low = (uint32_t)p->number; low < keys; low += THREADS)
        if (encode(plain, given ^ low) == coded)
            key = given ^ low;
    return NULL;
}

int main(void) {
    coded = encode(plain, given ^ SIZED(11u, 2999999u));
    in_parallel(search_part, NULL);
    printf("keysearch %u\n", key);
    return 0;
}

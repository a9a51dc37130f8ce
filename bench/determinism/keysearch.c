// Finds the key of a known text by trying all keys of which a part is given. A thread that finds it says so in a
// flag that the others look at without a lock, to stop early: a race that cannot change the key, which is the only
// one.
#include "../noninterference/kernel.h"

#define BITS SIZED(4, 22)

static uint32_t partialkey = 0x5eedu << 8;
uint32_t plain = 0x01234567u;
static uint32_t coded, key;
static volatile int found;

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
    for (uint32_t low = (uint32_t)p->number; low < keys && !found; low += THREADS)
        if (encode(plain, partialkey ^ low) == coded) {
            key = partialkey ^ low;
            found = 1;
        }
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    partialkey += (uint32_t)input << 24;
    coded = encode(plain, partialkey ^ (SIZED(11u, 2999999u)));
    SELVEDGE_DETERMINISTIC_BEGIN("keysearch");
    SELVEDGE_ASSUME("partialkey", partialkey);
    SELVEDGE_ASSUME("plain", plain);
    SELVEDGE_ASSUME("coded", coded);
    in_parallel(search_part, NULL);
    SELVEDGE_ENSURE("key", key);
    SELVEDGE_REGION_END();
    return finish("keysearch", key, partialkey ^ (SIZED(11u, 2999999u)));
}

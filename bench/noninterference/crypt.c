// Encrypts and decrypts a text with the block cipher IDEA; each thread has a part of the blocks.
#include <string.h>

#include "kernel.h"

#define LENGTH SIZED(4096, 12000000)
#define ROUNDS 8
#define SUBKEYS 52

static uint8_t plain[LENGTH], coded[LENGTH], back[LENGTH];
static uint16_t forth_keys[SUBKEYS], back_keys[SUBKEYS];

// Multiplication modulo 65537, in which 0 stands for 65536.
static uint16_t times(uint32_t a, uint32_t b) {
    if (a == 0)
        return (uint16_t)(1 - b);
    if (b == 0)
        return (uint16_t)(1 - a);
    uint32_t product = a * b, low = product & 0xffff, high = product >> 16;
    return (uint16_t)(low - high + (low < high));
}

// The factor that undoes x, as a power of it: the group has 65536 elements.
static uint16_t inverse(uint16_t x) {
    uint16_t result = 1;
    for (int i = 0; i < 16; i++) {
        result = times(result, x);
        x = times(x, x);
    }
    return result;
}

static void expand(const uint16_t *user, uint16_t *keys) {
    memcpy(keys, user, 8 * sizeof *keys);
    for (int i = 8; i < SUBKEYS; i++) {
        // Each eight subkeys are the last eight, turned left by 25 bits.
        int from = i - 8, row = from & ~7, at = from & 7;
        keys[i] = (uint16_t)(keys[row + ((at + 1) & 7)] << 9 | keys[row + ((at + 2) & 7)] >> 7);
    }
}

static void invert(const uint16_t *keys, uint16_t *out) {
    for (int round = 0; round <= ROUNDS; round++) {
        const uint16_t *k = keys + 6 * (ROUNDS - round);
        uint16_t *o = out + 6 * round;
        int straight = round == 0 || round == ROUNDS;
        o[0] = inverse(k[0]);
        o[1] = (uint16_t)-k[straight ? 1 : 2];
        o[2] = (uint16_t)-k[straight ? 2 : 1];
        o[3] = inverse(k[3]);
        if (round < ROUNDS) {
            o[4] = k[-2];
            o[5] = k[-1];
        }
    }
}

static void cipher(const uint8_t *in, uint8_t *out, const uint16_t *key) {
    uint16_t x[4];
    for (int i = 0; i < 4; i++)
        x[i] = (uint16_t)(in[2 * i] << 8 | in[2 * i + 1]);
    for (int round = 0; round < ROUNDS; round++, key += 6) {
        x[0] = times(x[0], key[0]);
        x[1] += key[1];
        x[2] += key[2];
        x[3] = times(x[3], key[3]);
        uint16_t t0 = times((uint16_t)(x[0] ^ x[2]), key[4]);
        uint16_t t1 = times((uint16_t)(t0 + (x[1] ^ x[3])), key[5]);
        t0 += t1;
        x[0] ^= t1;
        x[3] ^= t0;
        uint16_t swapped = x[1] ^ t0;
        x[1] = x[2] ^ t1;
        x[2] = swapped;
    }
    uint16_t y[4] = {times(x[0], key[0]), (uint16_t)(x[2] + key[1]), (uint16_t)(x[1] + key[2]),
                     times(x[3], key[3])};
    for (int i = 0; i < 4; i++) {
        out[2 * i] = (uint8_t)(y[i] >> 8);
        out[2 * i + 1] = (uint8_t)y[i];
    }
}

static void *encrypt_part(void *arg) {
    struct part *p = arg;
    for (int i = part_from(LENGTH / 8, p->number); i < part_to(LENGTH / 8, p->number); i++)
        cipher(plain + 8 * i, coded + 8 * i, forth_keys);
    return NULL;
}

static void *decrypt_part(void *arg) {
    struct part *p = arg;
    for (int i = part_from(LENGTH / 8, p->number); i < part_to(LENGTH / 8, p->number); i++)
        cipher(coded + 8 * i, back + 8 * i, back_keys);
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    // The example that came with the cipher.
    const uint16_t user[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uint8_t example[8] = {0, 0, 0, 1, 0, 2, 0, 3};
    const uint8_t known[8] = {0x11, 0xfb, 0xed, 0x2b, 0x01, 0x98, 0x6d, 0xe5};
    uint8_t got_known[8];
    expand(user, forth_keys);
    invert(forth_keys, back_keys);
    cipher(example, got_known, forth_keys);
    uint64_t state = 1 + (uint64_t)input;
    for (int i = 0; i < LENGTH; i++)
        plain[i] = (uint8_t)next_random(&state);
    SELVEDGE_DETERMINISTIC_BEGIN("crypt");
    SELVEDGE_ASSUME_ARRAY("keys", forth_keys, SUBKEYS);
    SELVEDGE_ASSUME_BYTES("plain", plain, LENGTH);
    in_parallel(encrypt_part, NULL);
    in_parallel(decrypt_part, NULL);
    SELVEDGE_ENSURE_BYTES("coded", coded, LENGTH);
    SELVEDGE_ENSURE_BYTES("back", back, LENGTH);
    SELVEDGE_REGION_END();
    double got = 0, expected = 0;
    for (int i = 0; i < LENGTH; i++) {
        got += back[i];
        expected += plain[i];
    }
    int right = memcmp(known, got_known, 8) == 0 && memcmp(plain, back, LENGTH) == 0;
    return finish("crypt", right ? got : -1, expected);
}

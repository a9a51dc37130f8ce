// Encrypts and decrypts a buffer with a block cipher (XTEA); each thread has a part of the blocks.
#include "kernel.h"

#define BLOCKS 2048

static uint32_t plain[2 * BLOCKS], coded[2 * BLOCKS], back[2 * BLOCKS];
static uint32_t key[4];

static void encrypt(const uint32_t *in, uint32_t *out) {
    uint32_t a = in[0], b = in[1], sum = 0;
    for (int i = 0; i < 32; i++) {
        a += (((b << 4) ^ (b >> 5)) + b) ^ (sum + key[sum & 3]);
        sum += 0x9e3779b9;
        b += (((a << 4) ^ (a >> 5)) + a) ^ (sum + key[(sum >> 11) & 3]);
    }
    out[0] = a;
    out[1] = b;
}

static void decrypt(const uint32_t *in, uint32_t *out) {
    uint32_t a = in[0], b = in[1], sum = 0x9e3779b9u * 32;
    for (int i = 0; i < 32; i++) {
        b -= (((a << 4) ^ (a >> 5)) + a) ^ (sum + key[(sum >> 11) & 3]);
        sum -= 0x9e3779b9;
        a -= (((b << 4) ^ (b >> 5)) + b) ^ (sum + key[sum & 3]);
    }
    out[0] = a;
    out[1] = b;
}

static void *encrypt_part(void *arg) {
    struct part *p = arg;
    SELVEDGE_DETERMINISTIC_BEGIN("encrypt_part");
    for (int i = part_from(BLOCKS, p->number); i < part_to(BLOCKS, p->number); i++)
        encrypt(plain + 2 * i, coded + 2 * i);
    SELVEDGE_DETERMINISTIC_END("encrypt_part");
    return NULL;
}

static void *decrypt_part(void *arg) {
    struct part *p = arg;
    SELVEDGE_DETERMINISTIC_BEGIN("decrypt_part");
    for (int i = part_from(BLOCKS, p->number); i < part_to(BLOCKS, p->number); i++)
        decrypt(coded + 2 * i, back + 2 * i);
    SELVEDGE_DETERMINISTIC_END("decrypt_part");
    return NULL;
}

int main(void) {
    SELVEDGE_DETERMINISTIC_BEGIN("main");
    uint64_t state = 1;
    for (int i = 0; i < 4; i++)
        key[i] = next_random(&state);
    for (int i = 0; i < 2 * BLOCKS; i++)
        plain[i] = next_random(&state);
    in_parallel(encrypt_part, NULL);
    in_parallel(decrypt_part, NULL);
    double got = 0, expected = 0, changed = 0;
    for (int i = 0; i < 2 * BLOCKS; i++) {
        got += back[i];
        expected += plain[i];
        changed += coded[i] != plain[i];
    }
    SELVEDGE_DETERMINISTIC_END("main");
    return finish("crypt", changed > BLOCKS ? got : -1, expected);
}

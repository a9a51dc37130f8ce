#include "corpus.h"
// Accesses that lie in two granules, or three, of which one was accessed before by the same thread: the runtime must not
// take the other one for known. The compilers call these functions for packed structures and for copies of a few bytes.
void __tsan_unaligned_read2(const void *at);
void __tsan_unaligned_read4(const void *at);
void __tsan_unaligned_read8(const void *at);
void __tsan_unaligned_read16(const void *at);
void __tsan_unaligned_write2(void *at);
void __tsan_unaligned_write4(void *at);
void __tsan_unaligned_write8(void *at);
void __tsan_unaligned_write16(void *at);
enum { PLACES = 16 };
static _Alignas(8) char memory[PLACES][32];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
// The first 8 bytes, or the second 8, have been read and written by this thread.
static void known(int place, int part) {
    volatile uint64_t *words = (volatile uint64_t *)memory[place];
    words[part] = words[part] + 1;
}
static void *crosses(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    for (int i = 0; i < PLACES; i++) known(i, i < PLACES / 2 ? 0 : 1);
    __tsan_unaligned_read2(memory[0] + 7);   // race(up_read2)
    __tsan_unaligned_read4(memory[1] + 6);   // race(up_read4)
    __tsan_unaligned_read8(memory[2] + 1);   // race(up_read8)
    __tsan_unaligned_read16(memory[3] + 3);  // race(up_read16)
    __tsan_unaligned_write2(memory[4] + 7);  // race(up_write2)
    __tsan_unaligned_write4(memory[5] + 5);  // race(up_write4)
    __tsan_unaligned_write8(memory[6] + 1);  // race(up_write8)
    __tsan_unaligned_write16(memory[7] + 3); // race(up_write16)
    __tsan_unaligned_read2(memory[8] + 7);   // race(down_read2)
    __tsan_unaligned_read4(memory[9] + 7);   // race(down_read4)
    __tsan_unaligned_read8(memory[10] + 7);  // race(down_read8)
    __tsan_unaligned_read16(memory[11] + 7); // race(down_read16)
    __tsan_unaligned_write2(memory[12] + 7); // race(down_write2)
    __tsan_unaligned_write4(memory[13] + 7); // race(down_write4)
    __tsan_unaligned_write8(memory[14] + 7); // race(down_write8)
    __tsan_unaligned_write16(memory[15] + 7); // race(down_write16)
    // Within the bytes of one granule, and beside what the other thread writes: no race.
    __tsan_unaligned_read4(memory[0] + 1);
    __tsan_unaligned_write8(memory[8] + 9);
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
static void *touches(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    memory[0][8] = 1;   // race(up_read2)
    memory[1][9] = 1;   // race(up_read4)
    memory[2][8] = 1;   // race(up_read8)
    memory[3][18] = 1;  // race(up_read16)
    memory[4][8] = 1;   // race(up_write2)
    memory[5][8] = 1;   // race(up_write4)
    memory[6][8] = 1;   // race(up_write8)
    memory[7][18] = 1;  // race(up_write16)
    memory[8][7] = 1;   // race(down_read2)
    memory[9][7] = 1;   // race(down_read4)
    memory[10][7] = 1;  // race(down_read8)
    memory[11][7] = 1;  // race(down_read16)
    memory[12][7] = 1;  // race(down_write2)
    memory[13][7] = 1;  // race(down_write4)
    memory[14][7] = 1;  // race(down_write8)
    memory[15][7] = 1;  // race(down_write16)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) {
    both(crosses, touches);
    return 0;
}

// options: -O2 -mavx2
// own hooks only: the compilers' passes leave out accesses of more than 16 bytes.
#include "corpus.h"
// A vector of 32 bytes, a number of 10 bytes, and three numbers of four bytes that are one vector.
typedef int vector __attribute__((vector_size(32)));
typedef float triple __attribute__((ext_vector_type(3)));
vector whole[5];
long double extended[4];
triple three[4];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local volatile int sink;
// Keeps the compiler from making one access of two lines.
#define APART() __asm__ volatile("" ::: "memory")
static void *in_vectors(void *arg) {
    const vector ones = {1, 1, 1, 1, 1, 1, 1, 1};
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    whole[0] = ones;         // race(write)
    APART();
    whole[4] = whole[1];     // race(read)
    APART();
    extended[0] = 1;         // race(extended)
    APART();
    three[0] = (triple){1, 2, 3}; // race(three)
    APART();
    // Beside what the other thread accesses: no race.
    whole[2] = ones;
    extended[2] = 2;
    vector private = whole[2] + ones;
    sink = private[3];
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
static void *in_parts(void *arg) {
    int *part = (int *)whole;
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    sink = part[7];          // race(write)
    part[8] = 2;             // race(read)
    ((char *)extended)[9] = 1; // race(extended)
    ((float *)three)[2] = 1; // race(three)
    part[24] = 1;
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) {
    both(in_vectors, in_parts);
    return 0;
}

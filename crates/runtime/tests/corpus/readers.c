#include "corpus.h"
// Many readers of one array, then a writer that has joined all of them, or all but one.
enum { READERS = 20 };
double table[64];
static void *reader(void *arg) {
    double sum = 0;
    for (int i = 0; i < 64; i++) sum += table[i]; // race(table)
    return sum < 0 ? arg : NULL;
}
int main(void) {
    pthread_t t[READERS];
    for (int i = 0; i < READERS; i++) t[i] = start(reader, NULL);
    for (int i = 1; i < READERS; i++) pthread_join(t[i], NULL);
#ifdef FIXED
    pthread_join(t[0], NULL);
#endif
    for (int i = 0; i < 64; i++) table[i] = i; // race(table)
#ifndef FIXED
    pthread_join(t[0], NULL);
#endif
    return 0;
}

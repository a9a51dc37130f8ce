// Each task of a taskloop has a copy of what is firstprivate, in a block that is used again. There are so many
// tasks that the library lets both threads copy.
#include "omp_corpus.h"
struct Counter {
    int n = 0;
    Counter() {}
    Counter(const Counter &other) : n(other.n) {}
    ~Counter() { n = -1; }
};
int main() {
    Counter c;
    long sum = 0, rounds = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int r = 0; r < 50; r++) {
#pragma omp taskloop grainsize(1) firstprivate(c) lastprivate(rounds) shared(sum)
        for (int i = 0; i < 64; i++) {
            c.n += i;
            if (r == 0 && i < 2) meet(2);
#ifdef FIXED
#pragma omp atomic
#endif
            sum += c.n; // race(sum)
            rounds = r;
        }
    }
    printf("%ld %ld\n", sum, rounds);
    return 0;
}

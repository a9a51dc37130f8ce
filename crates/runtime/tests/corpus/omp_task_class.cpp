// What is firstprivate in a task is copied by the program's code, and a long argument by the library.
#include "omp_corpus.h"
struct Counter {
    int n = 0;
    int parts[300] = {};
    Counter() {}
    Counter(const Counter &other) : n(other.n) { parts[299] = other.parts[299]; }
    ~Counter() { n = -1; }
};
struct Plain {
    int parts[300];
};
int main() {
    Counter c;
    Plain p = {};
    long sum = 0;
    c.parts[299] = p.parts[299] = 1;
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 40; i++) {
#pragma omp task firstprivate(c, p) shared(sum)
        {
            c.n += c.parts[299];
            p.parts[0] += p.parts[299];
            if (i < 2) meet(2);
#ifdef FIXED
#pragma omp atomic
#endif
            sum += c.n + p.parts[0]; // race(sum)
        }
        c.n = i;
        p.parts[0] = i;
    }
    printf("%ld\n", sum);
    return 0;
}

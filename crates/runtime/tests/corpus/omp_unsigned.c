// Loops over numbers that do not fit into a signed word, in chunks, in order, and waiting for each other.
#include "omp_corpus.h"
int sum, order[8], chain[8];
int main(void) {
    const unsigned long long first = 1ull << 63;
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(dynamic, 1) ordered
        for (unsigned long long i = first; i < first + 8; i++) {
            order[i - first] = 1;
#pragma omp ordered
            order[0] += order[i - first];
        }
#pragma omp for schedule(static, 1) ordered(1)
        for (unsigned long long i = first + 1; i < first + 8; i++) {
#ifdef FIXED
#pragma omp ordered depend(sink : i - 1)
#endif
            chain[i - first] = chain[i - first - 1] + 1; // race(chain)
#pragma omp ordered depend(source)
        }
    }
    printf("%d\n", sum + order[0] + chain[7]);
    return 0;
}

// A reduction with an operation of the program's own: the library lets one thread combine after the other.
#include "omp_corpus.h"
struct pair {
    long sum, product;
};
static void combine(struct pair *into, struct pair *from) {
    into->sum += from->sum; // race(result)
    into->product *= from->product;
}
#pragma omp declare reduction(both : struct pair : combine(&omp_out, &omp_in)) initializer(omp_priv = {0, 1})
int main(void) {
    struct pair result = {0, 1};
    long seen = 0;
#pragma omp parallel num_threads(2) reduction(+ : seen)
    {
#ifdef FIXED
#pragma omp for reduction(both : result)
#else
#pragma omp for reduction(both : result) nowait // race(result)
#endif
        for (int i = 1; i < 9; i++) {
            result.sum += i;
            result.product *= i;
        }
        meet(2);
        seen += result.sum; // race(result)
    }
    printf("%ld %ld\n", result.sum, seen);
    return 0;
}

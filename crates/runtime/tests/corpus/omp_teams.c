// Teams that nothing orders until all of them have ended.
// clang only: gcc lets one thread run the teams of the host, one after the other.
#include "omp_corpus.h"
int sum, parts[8];
int main(void) {
#pragma omp teams distribute num_teams(2) dist_schedule(static, 1) // race(sum) optional
    for (int i = 0; i < 8; i++) { // race(sum) optional: the sum is read before
        parts[i] = i;
#ifdef FIXED
#pragma omp atomic
#endif
        sum += i; // race(sum)
    } // race(sum) optional: and written after the loop
    sum += parts[7] + parts[6];
    printf("%d\n", sum);
    return 0;
}

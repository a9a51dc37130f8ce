// Two loops made one: rows are divided between threads as well.
#include "omp_corpus.h"
int rows[3], cells[3][5];
int main(void) {
#pragma omp parallel for collapse(2) num_threads(2)
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 5; j++) {
            cells[i][j] = i * j;
#ifdef FIXED
#pragma omp atomic update
#endif
            rows[i] += j; // race(rows)
        }
    printf("%d %d\n", rows[1], cells[2][4]);
    return 0;
}

// A flag that says that data is there: without flush it orders nothing.
#include "omp_corpus.h"
int data, flag;
int main(void) {
    int seen = 0;
#pragma omp parallel num_threads(2) reduction(+ : seen)
    {
        if (omp_get_thread_num() == 0) {
            data = 42; // race(data)
#ifdef FIXED
#pragma omp flush
#endif
#pragma omp atomic write
            flag = 1;
        } else {
            int there = 0;
            while (!there) {
#pragma omp atomic read
                there = flag;
            }
#ifdef FIXED
#pragma omp flush
#endif
            seen += data; // race(data)
        }
    }
    printf("%d\n", seen);
    return 0;
}

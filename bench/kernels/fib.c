// Calls: naive Fibonacci, each thread its own, counted through memory.
#include "common.h"
static int n;
static long result[THREADS][16];
__attribute__((noinline)) static long fib(int k, long *calls) {
    ++*calls;
    return k < 2 ? k : fib(k - 1, calls) + fib(k - 2, calls);
}
static void *work(void *id) {
    long calls = 0;
    result[(intptr_t)id][0] = fib(n, &calls) + calls;
    return NULL;
}
int main(int argc, char **argv) {
    n = scale(argc, argv, 34);
    run_threads();
    printf("%ld\n", result[0][0] + result[1][0]);
}

// The same memory is allocated twice, one after the other. Blocks of this size are not kept when they are freed.
#include <stdlib.h>

int main(void) {
    volatile int *first = malloc(40000);
    first[5] = 1;
    free((void *)first);
    volatile int *second = malloc(40000);
    second[5] = 2;
    free((void *)second);
    return first == second ? 0 : 1;
}

// Memory is compared as far as the first difference.
#include <stdlib.h>
#include <string.h>

volatile size_t len = 32;
char left[32] = "abcd", right[32] = "abxd";

int main(void) {
    return memcmp(left, right, len) < 0 && memcmp(left, left + 16, 0 * len) == 0 ? 0 : 1;
}

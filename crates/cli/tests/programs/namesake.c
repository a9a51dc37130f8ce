/* See namesakes.c. */
#include <string.h>

#include <selvedge.h>

static int same(const void *a, size_t a_size, const void *b, size_t b_size) {
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

void ensure_exactly(const int *list, int len) {
    SELVEDGE_ENSURE_ARRAY_BY("exact", list, len, SELVEDGE_SAME(same));
}

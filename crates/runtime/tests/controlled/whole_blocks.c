// Every byte that belongs to a block may be written, however the block was made.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(char *block, size_t size) {
    for (size_t i = 0; i < size; i++) block[i] = (char)i;
    memset(block, 1, size);
}

// An allocator on top of the heap: blocks of its own, one right after the other.
struct pool {
    char *memory;
    size_t used, size;
};

static char *take(struct pool *pool, size_t size) {
    if (pool->used + size > pool->size) {
        pool->size = 2 * pool->size + size;
        pool->memory = realloc(pool->memory, pool->size);
    }
    pool->used += size;
    return pool->memory + pool->used - size;
}

static void *use(void *arg) {
    for (size_t size = 0; size < 80; size++) {
        char *block = malloc(size);
        fill(block, size);
        block = realloc(block, 2 * size + 1);
        fill(block, 2 * size + 1);
        block = realloc(block, size / 2 + 1);
        fill(block, size / 2 + 1);
        fill(block, malloc_usable_size(block));
        free(block);
        block = calloc(size, 3);
        fill(block, 3 * size);
        block = reallocarray(block, size + 1, 5);
        fill(block, 5 * (size + 1));
        free(block);
        block = aligned_alloc(64, 64 * (size / 64 + 1));
        fill(block, 64 * (size / 64 + 1));
        free(block);
        void *aligned;
        if (posix_memalign(&aligned, 32, size) != 0) abort();
        fill(aligned, size);
        free(aligned);
        block = memalign(16, size);
        fill(block, size);
        fill(block, malloc_usable_size(block));
        free(block);
    }
    struct pool pool = {NULL, 0, 0};
    for (size_t i = 1; i < 60; i++) fill(take(&pool, i), i);
    free(pool.memory);
    char *copy = strdup("seven bytes more");
    copy = realloc(copy, 100);
    strcat(copy, " and so on");
    fill(copy, 100);
    free(copy);
    char *text;
    if (asprintf(&text, "%d and %d", 12, 34) < 0) abort();
    fill(text, strlen(text) + 1);
    free(text);
    char *large = malloc(1 << 20);
    fill(large + (1 << 20) - 64, 64);
    free(large);
    return arg;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}

/* The ring of Concurrency Kit for many producers and consumers: two tasks put, two take. What is taken and what is left
 * is the result. */
#include <ck_ring.h>
#include <pthread.h>
#include <stdio.h>

static ck_ring_t ring;
static ck_ring_buffer_t buffer[4];
static int values[2] = {1, 2}, taken[2];

static void *put(void *number) {
    ck_ring_enqueue_mpmc(&ring, buffer, &values[(long)number]);
    return 0;
}

static void *take(void *number) {
    void *value = 0;
    if (!ck_ring_dequeue_mpmc(&ring, buffer, &value))
        value = 0;
    taken[(long)number] = value ? *(int *)value : 0;
    return 0;
}

int main(void) {
    pthread_t threads[4];
    ck_ring_init(&ring, 4);
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[2 * i], 0, put, (void *)i);
        pthread_create(&threads[2 * i + 1], 0, take, (void *)i);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("taken %d %d, left", taken[0], taken[1]);
    void *value;
    while (ck_ring_dequeue_mpmc(&ring, buffer, &value))
        printf(" %d", *(int *)value);
    printf("\n");
    return 0;
}

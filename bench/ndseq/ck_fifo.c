/* The queue of Concurrency Kit for one producer and one consumer, with its two spin locks around it: two tasks put, two
 * take. What is taken and what is left is the result. */
#include <ck_fifo.h>
#include <pthread.h>
#include <stdio.h>

static ck_fifo_spsc_t fifo;
static ck_fifo_spsc_entry_t entries[3];
static int values[2] = {1, 2}, taken[2];

static void *put(void *number) {
    long i = (long)number;
    ck_fifo_spsc_enqueue_lock(&fifo);
    ck_fifo_spsc_enqueue(&fifo, &entries[i + 1], &values[i]);
    ck_fifo_spsc_enqueue_unlock(&fifo);
    return 0;
}

static void *take(void *number) {
    void *value = 0;
    ck_fifo_spsc_dequeue_lock(&fifo);
    if (!ck_fifo_spsc_dequeue(&fifo, &value))
        value = 0;
    ck_fifo_spsc_dequeue_unlock(&fifo);
    taken[(long)number] = value ? *(int *)value : 0;
    return 0;
}

int main(void) {
    pthread_t threads[4];
    ck_fifo_spsc_init(&fifo, &entries[0]);
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[2 * i], 0, put, (void *)i);
        pthread_create(&threads[2 * i + 1], 0, take, (void *)i);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("taken %d %d, left", taken[0], taken[1]);
    void *value;
    while (ck_fifo_spsc_dequeue(&fifo, &value))
        printf(" %d", *(int *)value);
    printf("\n");
    return 0;
}

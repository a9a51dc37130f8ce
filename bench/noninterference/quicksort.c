// SingleTrack's figure 1: sorts an array under its lock, with a thread for each half while they are large.
#include "kernel.h"

#define LENGTH SIZED(2000, 3000000)
#define ALONE_BELOW SIZED(200, 200000)

static struct {
    pthread_mutex_t lock;
    int items[LENGTH];
} array = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct slice {
    int low, high;
};

static int partition(int low, int high) {
    int *a = array.items, middle = a[(low + high) / 2], i = low - 1, j = high + 1;
    for (;;) {
        do
            i++;
        while (a[i] < middle);
        do
            j--;
        while (a[j] > middle);
        if (i >= j)
            return j;
        int t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

static void *sort_slice(void *arg) {
    struct slice *s = arg;
    if (s->low < s->high) {
        int split = partition(s->low, s->high);
        struct slice left = {s->low, split}, right = {split + 1, s->high};
        if (s->high - s->low < ALONE_BELOW) {
            sort_slice(&left);
            sort_slice(&right);
        } else {
            pthread_t threads[2];
            if (pthread_create(&threads[0], NULL, sort_slice, &left) != 0 ||
                pthread_create(&threads[1], NULL, sort_slice, &right) != 0)
                abort();
            pthread_join(threads[0], NULL);
            pthread_join(threads[1], NULL);
        }
    }
    return NULL;
}

static void quicksort(void) {
    pthread_mutex_lock(&array.lock);
    struct slice all = {0, LENGTH - 1};
    sort_slice(&all);
    pthread_mutex_unlock(&array.lock);
}

int main(void) {
    uint64_t state = 7;
    double expected = 0, got = 0;
    for (int i = 0; i < LENGTH; i++)
        expected += array.items[i] = (int)(next_random(&state) % 10000);
    quicksort();
    int sorted = 1;
    for (int i = 0; i < LENGTH; i++) {
        got += array.items[i];
        sorted &= i == 0 || array.items[i - 1] <= array.items[i];
    }
    return finish("quicksort", sorted ? got : -1, expected);
}

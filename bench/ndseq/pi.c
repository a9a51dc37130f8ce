// Pi by random points: every thread has a generator of its own and adds what it found to the sum at the end.
#include "../noninterference/kernel.h"

#define POINTS SIZED(40, 4000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long inside;

static void *sample_part(void *arg) {
    struct part *p = arg;
    uint64_t state = 7 + (uint64_t)p->number;
    long found = 0;
    for (int i = part_from(POINTS, p->number); i < part_to(POINTS, p->number); i++) {
        double x = next_unit(&state), y = next_unit(&state);
        found += x * x + y * y < 1;
    }
    pthread_mutex_lock(&lock);
    inside = inside + found;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    in_parallel(sample_part, NULL);
    printf("pi %.6f\n", 4.0 * (double)inside / POINTS);
    return 0;
}

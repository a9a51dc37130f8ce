// Prices by random paths. Every path also writes shared fields that nothing reads for the result: the path's name and
// how many were begun. A check for which these writes count alarms.
#include <math.h>

#include "../noninterference/kernel.h"

#define PATHS SIZED(8, 12000)
#define DAYS SIZED(6, 1000)

static struct {
    int number, begun;
} last_path;
static double results[PATHS];

static void construct(int number) {
    last_path.number = number;
    last_path.begun = last_path.begun + 1;
}

static double path(int number) {
    uint64_t state = 1000 + (uint64_t)number;
    double price = 100;
    construct(number);
    for (int day = 0; day < DAYS; day++) {
        double noise = next_unit(&state) + next_unit(&state) + next_unit(&state) - 1.5;
        price *= exp(0.0002 + 0.02 * noise);
    }
    return price > 100 ? price - 100 : 0;
}

static void *price_part(void *arg) {
    struct part *p = arg;
    for (int i = part_from(PATHS, p->number); i < part_to(PATHS, p->number); i++)
        results[i] = path(i);
    return NULL;
}

int main(void) {
    in_parallel(price_part, NULL);
    double sum = 0;
    for (int i = 0; i < PATHS; i++)
        sum += results[i];
    printf("montecarlo %.9g\n", sum / PATHS);
    return 0;
}

// Prices an option by random paths: every path has a seed of its own, and its result a place of its own.
#include <math.h>

#include "kernel.h"

#define PATHS 400
#define DAYS 60

static double results[PATHS], expected[PATHS];

static double path(int number) {
    uint64_t state = 1000u + (uint64_t)number;
    double price = 100;
    for (int day = 0; day < DAYS; day++) {
        double noise = next_unit(&state) + next_unit(&state) + next_unit(&state) - 1.5;
        price *= exp(0.0002 + 0.02 * noise);
    }
    return price > 100 ? price - 100 : 0;
}

static void *price_part(void *arg) {
    struct part *p = arg;
    SELVEDGE_DETERMINISTIC_BEGIN("price_part");
    for (int i = part_from(PATHS, p->number); i < part_to(PATHS, p->number); i++)
        results[i] = path(i);
    SELVEDGE_DETERMINISTIC_END("price_part");
    return NULL;
}

int main(void) {
    SELVEDGE_DETERMINISTIC_BEGIN("main");
    in_parallel(price_part, NULL);
    double got = 0, right = 0;
    for (int i = 0; i < PATHS; i++) {
        expected[i] = path(i);
        got += results[i];
        right += expected[i];
    }
    SELVEDGE_DETERMINISTIC_END("main");
    return finish("montecarlo", got / PATHS, right / PATHS);
}

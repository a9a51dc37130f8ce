// Prices an option by random paths: every path has a seed of its own, and its result a place of its own.
#include <math.h>

#include "kernel.h"

#define PATHS SIZED(200, 12000)
#define DAYS SIZED(60, 1000)

// Where the seeds of the paths begin.
static uint64_t seed = 1000;
static double results[PATHS], expected[PATHS];

static double path(int number) {
    uint64_t state = seed + (uint64_t)number;
    double price = 100;
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

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    seed += 1000 * (uint64_t)input;
    SELVEDGE_DETERMINISTIC_BEGIN("montecarlo");
    SELVEDGE_ASSUME("paths", PATHS);
    SELVEDGE_ASSUME("seed", seed);
    in_parallel(price_part, NULL);
    SELVEDGE_ENSURE_ARRAY("results", results, PATHS);
    SELVEDGE_REGION_END();
    double got = 0, right = 0;
    for (int i = 0; i < PATHS; i++) {
        expected[i] = path(i);
        got += results[i];
        right += expected[i];
    }
    return finish("montecarlo", got / PATHS, right / PATHS);
}

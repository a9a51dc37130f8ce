// Pi by random points. Threads share one generator: each draw is under its lock, but a point is two draws, and
// between them another thread may draw. Which numbers make a point depends on the schedule, and so does the
// result. With -DFIXED a point is drawn at once.
#include "../noninterference/kernel.h"

#define POINTS SIZED(6, 4000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t generator = 7;
static long inside[MOST_THREADS], total;

static double draw(void) {
    pthread_mutex_lock(&lock);
    double number = next_unit(&generator);
    pthread_mutex_unlock(&lock);
    return number;
}

static void *sample_part(void *arg) {
    struct part *p = arg;
    for (int i = part_from(POINTS, p->number); i < part_to(POINTS, p->number); i++) {
#ifdef FIXED
        pthread_mutex_lock(&lock);
        double x = next_unit(&generator), y = next_unit(&generator);
        pthread_mutex_unlock(&lock);
#else
        double x = draw(), y = draw();
#endif
        inside[p->number] += x * x + y * y < 1;
    }
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    generator += (uint64_t)input;
    SELVEDGE_DETERMINISTIC_BEGIN("pi");
    SELVEDGE_ASSUME("points", POINTS);
    SELVEDGE_ASSUME("generator", generator);
    in_parallel(sample_part, NULL);
    for (int t = 0; t < THREADS; t++)
        total += inside[t];
    SELVEDGE_ENSURE("inside", total);
    SELVEDGE_REGION_END();
    printf("pi %.6f\n", 4.0 * total / POINTS);
    return 0;
}

// Renders spheres; lines of the picture are dealt out to the threads, and the pixels are added to a checksum.
//
// With -DBUG every thread adds its lines to one checksum under a lock of its own, which excludes no thread. As a
// block it also says how far it is, without a lock: a race that cannot change the checksum.
#include <math.h>

#include "kernel.h"

#define SIZE SIZED(48, 700)
#define SPHERES SIZED(12, 64)

static struct {
    double x, y, z, radius;
} spheres[SPHERES];

static int pixel(int column, int row) {
    double dx = (column - SIZE / 2) / (double)SIZE, dy = (row - SIZE / 2) / (double)SIZE;
    double length = sqrt(dx * dx + dy * dy + 1), nearest = 1e9;
    for (int i = 0; i < SPHERES; i++) {
        double along = (spheres[i].x * dx + spheres[i].y * dy + spheres[i].z) / length;
        double square = spheres[i].x * spheres[i].x + spheres[i].y * spheres[i].y +
                        spheres[i].z * spheres[i].z;
        double inside = spheres[i].radius * spheres[i].radius - (square - along * along);
        if (inside > 0 && along - sqrt(inside) < nearest)
            nearest = along - sqrt(inside);
    }
    return nearest < 1e9 ? (int)(255 / (1 + nearest)) : 7;
}

static long line(int row) {
    long sum = 0;
    for (int column = 0; column < SIZE; column++)
        sum += pixel(column, row);
    return sum;
}

#ifdef BUG
static long checksum;
#ifdef BLOCKS
int rows_done;
#endif

static void *render_part(void *arg) {
    struct part *p = arg;
    pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
    for (int row = p->number; row < SIZE; row += THREADS) {
        long sum = line(row);
        pthread_mutex_lock(&mine);
        checksum = checksum + sum;
        pthread_mutex_unlock(&mine);
#ifdef BLOCKS
        rows_done = row;
#endif
    }
    return NULL;
}

static long total(void) { return checksum; }
#else
static long checksums[MOST_THREADS];

static void *render_part(void *arg) {
    struct part *p = arg;
    for (int row = p->number; row < SIZE; row += THREADS)
        checksums[p->number] += line(row);
    return NULL;
}

static long total(void) {
    long sum = 0;
    for (int t = 0; t < THREADS; t++)
        sum += checksums[t];
    return sum;
}
#endif

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    uint64_t state = 6 + (uint64_t)input;
    for (int i = 0; i < SPHERES; i++) {
        spheres[i].x = 4 * next_unit(&state) - 2;
        spheres[i].y = 4 * next_unit(&state) - 2;
        spheres[i].z = 4 + 4 * next_unit(&state);
        spheres[i].radius = 0.3 + next_unit(&state);
    }
    SELVEDGE_DETERMINISTIC_BEGIN("raytracer");
    SELVEDGE_ASSUME_BYTES("spheres", spheres, sizeof spheres);
    in_parallel(render_part, NULL);
    SELVEDGE_ENSURE("checksum", total());
    SELVEDGE_REGION_END();
    long expected = 0;
    for (int row = 0; row < SIZE; row++)
        expected += line(row);
    double got = (double)total();
    return finish("raytracer", got, (double)expected);
}

// Renders spheres; every thread adds its lines to one checksum, under a lock. Without -DFIXED the lock is the thread's
// own and excludes no other.
#include "../noninterference/kernel.h"

#define SIZE SIZED(6, 300)
#define SPHERES SIZED(3, 32)

static struct {
    int x, y, radius;
} spheres[SPHERES];
static pthread_mutex_t everyone = PTHREAD_MUTEX_INITIALIZER;
static long checksum;

static int pixel(int column, int row) {
    int shade = 7;
    for (int i = 0; i < SPHERES; i++) {
        int dx = column - spheres[i].x, dy = row - spheres[i].y;
        int inside = spheres[i].radius * spheres[i].radius - dx * dx - dy * dy;
        if (inside > shade)
            shade = inside;
    }
    return shade;
}

static void *render_part(void *arg) {
    struct part *p = arg;
    pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
#ifdef FIXED
    pthread_mutex_t *lock = &everyone;
#else
    pthread_mutex_t *lock = &mine;
#endif
    long sum = 0;
    for (int row = p->number; row < SIZE; row += THREADS)
        for (int column = 0; column < SIZE; column++)
            sum += pixel(column, row);
    pthread_mutex_lock(lock);
    checksum = checksum + sum;
    pthread_mutex_unlock(lock);
    (void)mine;
    return NULL;
}

int main(void) {
    uint64_t state = 6;
    for (int i = 0; i < SPHERES; i++) {
        spheres[i].x = (int)(next_random(&state) % SIZE);
        spheres[i].y = (int)(next_random(&state) % SIZE);
        spheres[i].radius = 2 + (int)(next_random(&state) % 4);
    }
    in_parallel(render_part, NULL);
    printf("raytracer %ld\n", checksum);
    return 0;
}

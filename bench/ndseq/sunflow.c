// A renderer in the shape of sunflow: tasks take tiles, share a geometry and a cache of shaders that whoever comes
// first initialises, count rays for statistics, and add to the picture's sum of light.
#include "../noninterference/kernel.h"
#include <selvedge.h>

#define TILES 4
#define SHADERS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int geometry_ready, geometry, shader_ready[SHADERS], shader[SHADERS];
static long rays, longest_ray;
static int picture[TILES];
static long light;

static int the_geometry(void) {
    if (SELVEDGE_STAR(__atomic_load_n(&geometry_ready, __ATOMIC_SEQ_CST) != 0)) {
    } else {
        SELVEDGE_LAZY_BEGIN("geometry");
        pthread_mutex_lock(&lock);
        if (!geometry_ready) {
            geometry = 17;
            __atomic_store_n(&geometry_ready, 1, __ATOMIC_SEQ_CST);
        }
        pthread_mutex_unlock(&lock);
        SELVEDGE_REGION_END();
    }
    return geometry;
}

static void make_shader(int number) {
    pthread_mutex_lock(&lock);
    if (!shader_ready[number]) {
        shader[number] = 3 + number;
        __atomic_store_n(&shader_ready[number], 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&lock);
}

static int first_shader(void) {
    if (SELVEDGE_STAR(__atomic_load_n(&shader_ready[0], __ATOMIC_SEQ_CST) != 0)) {
    } else {
        SELVEDGE_LAZY_BEGIN("shader 0");
        make_shader(0);
        SELVEDGE_REGION_END();
    }
    return shader[0];
}

static int second_shader(void) {
    if (SELVEDGE_STAR(__atomic_load_n(&shader_ready[1], __ATOMIC_SEQ_CST) != 0)) {
    } else {
        SELVEDGE_LAZY_BEGIN("shader 1");
        make_shader(1);
        SELVEDGE_REGION_END();
    }
    return shader[1];
}

static void count_ray(long length) {
    rays = rays + 1;
    longest_ray = length;
}

static void *render(void *arg) {
    int tile = (int)(long)arg, sum = 0;
    for (int i = 0; i < 3; i++) {
        int shade = i % 2 ? second_shader() : first_shader();
        count_ray(tile + i);
        sum += (the_geometry() + tile * i) * shade;
    }
    picture[tile] = sum;
    pthread_mutex_lock(&lock);
    light = light + sum;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[TILES];
    for (long i = 0; i < TILES; i++)
        pthread_create(&threads[i], NULL, render, (void *)i);
    for (int i = 0; i < TILES; i++)
        pthread_join(threads[i], NULL);
    printf("sunflow %ld:", light);
    for (int i = 0; i < TILES; i++)
        printf(" %d", picture[i]);
    printf("\n");
    return 0;
}

// The Mandelbrot set; threads take the next line from a counter under a lock. How far the picture has come is kept
// without a lock, and read by nothing: a race that cannot change the picture.
#include "../noninterference/kernel.h"

#define SIZE SIZED(8, 600)
#define DEPTH SIZED(20, 400)

static int depth = DEPTH;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_line;
static unsigned char picture[SIZE][SIZE];
int progress;

static int next(void) {
    pthread_mutex_lock(&lock);
    int line = next_line++;
    pthread_mutex_unlock(&lock);
    return line;
}

static void *draw_part(void *arg) {
    (void)arg;
    for (int row = next(); row < SIZE; row = next()) {
        for (int column = 0; column < SIZE; column++) {
            double a = 3.0 * column / SIZE - 2, b = 2.0 * row / SIZE - 1, x = 0, y = 0;
            int steps = 0;
            while (steps < depth && x * x + y * y < 4) {
                double moved = x * x - y * y + a;
                y = 2 * x * y + b;
                x = moved;
                steps++;
            }
            picture[row][column] = (unsigned char)steps;
        }
        progress = row;
    }
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    depth -= input;
    SELVEDGE_DETERMINISTIC_BEGIN("mandelbrot");
    SELVEDGE_ASSUME("size", SIZE);
    SELVEDGE_ASSUME("depth", depth);
    in_parallel(draw_part, NULL);
    SELVEDGE_ENSURE_BYTES("picture", picture, sizeof picture);
    SELVEDGE_REGION_END();
    long sum = 0;
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++)
            sum += picture[row][column];
    printf("mandelbrot %ld\n", sum);
    return 0;
}

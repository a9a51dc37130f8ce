// The tree of least parsimony score over some species, by branch and bound: threads take a first branch each, and
// prune what is worse than the best score so far, which they read without a lock. Which of several best trees is
// found depends on the schedule; the score does not.
#include "../noninterference/kernel.h"

#define SPECIES SIZED(5, 12)
#define LETTERS SIZED(4, 12)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char dna[SPECIES][LETTERS];
static int score = 1 << 30;
static int tree[SPECIES];

// The changes from one species to another.
static int distance(int a, int b) {
    int changes = 0;
    for (int i = 0; i < LETTERS; i++)
        changes += dna[a][i] != dna[b][i];
    return changes;
}

// Joins species `at` to one of those before it.
static void extend(int *parents, int at, int sum) {
    if (sum >= score)
        return;
    if (at == SPECIES) {
        pthread_mutex_lock(&lock);
        if (sum < score) {
            score = sum;
            for (int i = 0; i < SPECIES; i++)
                tree[i] = parents[i];
        }
        pthread_mutex_unlock(&lock);
        return;
    }
    for (int parent = 0; parent < at; parent++) {
        parents[at] = parent;
        extend(parents, at + 1, sum + distance(at, parent));
    }
}

static void *search_part(void *arg) {
    struct part *p = arg;
    // The first two choices have six possibilities.
    for (int first = p->number; first < 6; first += THREADS) {
        int parents[SPECIES] = {0, 0, first / 3, first % 3};
        extend(parents, 4, distance(1, 0) + distance(2, first / 3) + distance(3, first % 3));
    }
    return NULL;
}

int main(int argc, char **argv) {
    int input = arguments(argc, argv);
    uint64_t state = 8 + (uint64_t)input;
    for (int i = 0; i < SPECIES; i++)
        for (int j = 0; j < LETTERS; j++)
            dna[i][j] = "acgt"[next_random(&state) % 4];
    SELVEDGE_DETERMINISTIC_BEGIN("phylogeny");
    SELVEDGE_ASSUME("species", SPECIES);
    SELVEDGE_ASSUME_BYTES("dna", dna, sizeof dna);
    in_parallel(search_part, NULL);
    SELVEDGE_ENSURE("score", score);
    SELVEDGE_REGION_END();
    printf("phylogeny %d, %d\n", score, tree[SPECIES - 1]);
    return 0;
}

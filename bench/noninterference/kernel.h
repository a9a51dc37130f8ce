// What the kernels have in common: threads, marks for regions, and a check of the result.
//
// Every kernel is deterministic: whatever the schedule, it prints the same checksum, which it also
// computes without threads. With -DBUG, raytracer and sor have the bugs that SingleTrack found. Regions
// are not marked: functions are regions by name. With -DTINY the sizes are those of a test, with
// -DMIDDLE=n they are n times as large. With -DBLOCKS a kernel is a deterministic block with values, which say by
// themselves whether the result is right. With -DINFER the number of threads and of an input are arguments.
#ifndef KERNEL_H
#define KERNEL_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef BLOCKS
#include <selvedge.h>
#ifdef COST
// Whether there are blocks and values is said when the program runs: so code lies in the same places either way.
#undef SELVEDGE_CALL
#define SELVEDGE_CALL(function, arguments) (getenv("BLOCKS") ? (function) arguments : (void)0)
#define selvedge_hand_over (getenv("BLOCKS") ? selvedge_hand_over : 0)
#endif
#else
#define SELVEDGE_DETERMINISTIC_BEGIN(name) ((void)0)
#define SELVEDGE_REGION_END() ((void)0)
#define SELVEDGE_ASSUME(name, x) ((void)0)
#define SELVEDGE_ASSUME_ARRAY(name, p, n) ((void)0)
#define SELVEDGE_ASSUME_BYTES(name, p, size) ((void)0)
#define SELVEDGE_ENSURE(name, x) ((void)0)
#define SELVEDGE_ENSURE_BY(name, x, predicate) ((void)0)
#define SELVEDGE_ENSURE_ARRAY(name, p, n) ((void)0)
#define SELVEDGE_ENSURE_BYTES(name, p, size) ((void)0)
#endif

#ifdef TINY
#define SIZED(tiny, full) tiny
#elif defined(MIDDLE)
#define SIZED(tiny, full) (MIDDLE * (tiny))
#else
#define SIZED(tiny, full) full
#endif

#ifdef INFER
#define MOST_THREADS 10
#define THREADS nthreads
static int nthreads = 4;
#else
#define MOST_THREADS 4
#define THREADS 4
#endif

// The number of the input, 0 unless the arguments say which. The number of threads comes before it.
static inline int arguments(int count, char **words) {
#ifdef INFER
    if (count > 2) {
        nthreads = atoi(words[1]);
        return atoi(words[2]);
    }
#endif
    (void)count, (void)words;
    return 0;
}

// With -DEACH_STEP a block also ensures what it has after each step. With -DPLANTED=n, two threads add to a number without
// a lock in step n: an addition may be lost.
#ifdef PLANTED
#define PLANT(step, part, number_) \
    if ((step) == PLANTED && (part)->number < 2) \
    (number_) += 1e-3
#else
#define PLANT(step, part, number_) ((void)0)
#endif

// A part of the work: the thread with this number, and what it works on.
struct part {
    int number;
    void *work;
};

// Runs `body` in THREADS threads, this one among them, and waits for all.
static inline void in_parallel(void *(*body)(void *), void *work) {
    pthread_t threads[MOST_THREADS];
    struct part parts[MOST_THREADS];
    for (int i = 0; i < THREADS; i++)
        parts[i] = (struct part){i, work};
    for (int i = 1; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, body, &parts[i]) != 0)
            abort();
    body(&parts[0]);
    for (int i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

// The first and the last but one index of a part of n.
static inline int part_from(int n, int number) { return (int)((long)n * number / THREADS); }
static inline int part_to(int n, int number) { return part_from(n, number + 1); }

// The next number of a sequence that is the same everywhere.
static inline uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline double next_unit(uint64_t *state) { return next_random(state) / 2147483648.0; }

// Prints the result, and fails if it is not the expected one.
static inline int finish(const char *name, double got, double expected) {
    printf("%s %.9g\n", name, got);
    if (got != expected) {
        fprintf(stderr, "%s: expected %.9g\n", name, expected);
#ifndef BLOCKS
        return 1;
#endif
    }
    return 0;
}

#endif

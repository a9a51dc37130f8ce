/* Lifts that take people from floors, after the Elevator of the thesis: a floor has its own lock, and each
   button press is handed to the lift that serves it. */
#include <pthread.h>
#include <stdlib.h>

#ifndef PEOPLE
#define PEOPLE 3
#endif
enum { FLOORS = 4, LIFTS = 2 };

struct press {
    int from, to;
    struct press *next;
};

struct floor {
    pthread_mutex_t lock;
    struct press *up;
};

static struct floor floors[FLOORS];
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static int served;

static void *lift(void *unused) {
    for (int round = 0; round < PEOPLE; round++)
        for (int i = 0; i < FLOORS; i++) {
            struct floor *floor = &floors[i];
            pthread_mutex_lock(&floor->lock);
            struct press *taken = floor->up;
            if (taken)
                floor->up = taken->next;
            pthread_mutex_unlock(&floor->lock);
            if (!taken)
                continue;
            pthread_mutex_lock(&count_lock);
            served += taken->to > taken->from;
            pthread_mutex_unlock(&count_lock);
            free(taken);
        }
    return unused;
}

int main(void) {
    pthread_t lifts[LIFTS];
    for (int i = 0; i < FLOORS; i++) {
        pthread_mutex_init(&floors[i].lock, 0);
        for (int person = 0; person < PEOPLE; person++) {
            struct press *press = malloc(sizeof *press);
            press->from = i;
            press->to = person;
            press->next = floors[i].up;
            floors[i].up = press;
        }
    }
    for (int i = 0; i < LIFTS; i++)
        pthread_create(&lifts[i], 0, lift, 0);
    for (int i = 0; i < LIFTS; i++)
        pthread_join(lifts[i], 0);
    return served < 0;
}

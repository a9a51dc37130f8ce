// The write races with the read in the last round only: the other thread is started after three rounds.
#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 4 };

static volatile int shared;

static void *reader(void *nothing) {
    (void)shared;
    return nothing;
}

__attribute__((noinline)) static void put(int round) {
    shared = round;
}

int main(void) {
    pthread_t thread;
    for (int round = 0; round < ROUNDS; round++) {
        if (round == ROUNDS - 1) {
            pthread_create(&thread, 0, reader, 0);
            // The other thread comes to its access first, and is stopped there.
            for (int i = 0; i < 50; i++)
                sched_yield();
        }
        put(round);
    }
    pthread_join(thread, 0);
    return 0;
}

// Never ends: with an argument it computes for ever, without one it takes steps for ever.
#include <sched.h>

int main(int argc, char **argv) {
    (void)argv;
    volatile unsigned long n = 0;
    for (;;) {
        n++;
        if (argc == 1)
            sched_yield();
    }
}

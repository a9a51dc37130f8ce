// Races, then dies of a null pointer; its own handler must have run before.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
int x;
static void *f(void *arg) { x++; return arg; }
static void on_segv(int s) {
    (void)s;
    if (write(1, "handler\n", 8) != 8) _exit(9);
    signal(SIGSEGV, SIG_DFL);
}
int main(void) {
    pthread_t t;
    signal(SIGSEGV, on_segv);
    pthread_create(&t, NULL, f, NULL);
    x++;
    pthread_join(t, NULL);
    *(volatile int *)0 = 1;
    return 0;
}

// Texts that try to act on whoever reads a report: the name of a thread, the name of a variable (as the linker knows it),
// a line of source, and the message of an assertion, which has a megabyte.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int counter __asm__("<script>owned=1</script>\033[2J\342\200\256");
static const char evil[] = "<script>owned=1</script>\033[2J\377\342\200\256";

extern void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));

static void *add(void *arg) {
    pthread_setname_np(pthread_self(), "<b>\033[2J\377\342\200\256");
    counter++; /* LINE */
    return arg;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, add, 0);
    pthread_create(&two, 0, add, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    if (counter == 2) return 0;
    static char text[1 << 20];
    memset(text, 'x', sizeof text - 1);
    memcpy(text, evil, sizeof evil - 1);
    __assert_fail(text, "<script>.c", 1, "main");
}

// Races that the program itself suppresses, by ThreadSanitizer's functions and attributes.
#include <pthread.h>
int expected, ignored, leaked;
#ifndef PLAIN
const char *__tsan_default_suppressions(void) { return "race:expected_race\n"; }
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }
#define UNSEEN __attribute__((no_sanitize("thread")))
#else
#define UNSEEN
#endif
__attribute__((noinline)) static void expected_race(void) { expected++; }
UNSEEN __attribute__((noinline)) static void unseen_race(void) { ignored++; }
static void *works(void *arg) {
    expected_race();
    unseen_race();
    return arg;
}
int main(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, works, NULL);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    pthread_create(&t[0], NULL, works, NULL);
    for (volatile int i = 0; i < 100000000; i++);
    return 0;
}

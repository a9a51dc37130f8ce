// Says what the environment has for the C library, and that what stands behind it is still there.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *begin(void *arg) { return arg; }

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, begin, NULL);
    pthread_join(thread, NULL);
    const char *value = getenv("GLIBC_TUNABLES");
    printf("%s, %d after it\n", value ? value : "none", getenv("SELVEDGE_CONTROL_FD") != NULL);
    return 0;
}

#include "corpus.h"
#include <sys/mman.h>
// Memory that is unmapped and mapped again has no history.
static void *f(void *arg) {
    for (int i = 0; i < 200; i++) {
        int *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p[0] = i;
        p[1500] = i;
        munmap(p, 8192);
    }
    ++*(int *)arg; // race(page)
    return NULL;
}
int main(void) {
    int *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_t a = start(f, page), b = start(f, page
#ifdef FIXED
                                            + 1
#endif
    );
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}

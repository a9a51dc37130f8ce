#include "corpus.h"
int x;
static pthread_spinlock_t s;
static void *f(void *arg) {
#ifdef FIXED
    pthread_spin_lock(&s);
    x++;
    pthread_spin_unlock(&s);
#else
    x++; // race(x)
#endif
    return arg;
}
int main(void) { pthread_spin_init(&s, 0); both(f, f); pthread_spin_destroy(&s); return 0; }

#include "corpus.h"
#include <threads.h>
int value;
static once_flag flag = ONCE_FLAG_INIT;
static void make(void) {
    value = 3; // race(value)
}
static int f(void *arg) {
#ifdef FIXED
    call_once(&flag, make);
    return value == 3 ? 0 : arg != NULL;
#else
    (void)flag;
    make();
    return arg != NULL;
#endif
}
int main(void) {
    thrd_t a, b;
    thrd_create(&a, f, NULL);
    thrd_create(&b, f, NULL);
    thrd_join(a, NULL);
    thrd_join(b, NULL);
    return 0;
}

#include "corpus.h"
#include <threads.h>
int x, ready;
static mtx_t m;
static cnd_t c;
static int f(void *arg) {
    mtx_lock(&m);
    while (!ready) cnd_wait(&c, &m);
#ifndef FIXED
    mtx_unlock(&m);
#endif
    x++; // race(x)
#ifdef FIXED
    mtx_unlock(&m);
#endif
    return arg ? 7 : 9;
}
int main(void) {
    int result;
    thrd_t t;
    mtx_init(&m, mtx_plain);
    cnd_init(&c);
    thrd_create(&t, f, NULL);
    mtx_lock(&m);
    ready = 1;
    cnd_signal(&c);
#ifdef FIXED
    x++;
#endif
    mtx_unlock(&m);
#ifndef FIXED
    x++; // race(x)
#endif
    thrd_join(t, &result);
    return result != 9;
}

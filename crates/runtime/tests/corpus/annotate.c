#include "corpus.h"
void __tsan_acquire(void *);
void __tsan_release(void *);
// Order that only an annotation tells: it goes through a pipe.
int data, ends[2];
static void *producer(void *arg) {
    data = 1; // race(data)
#ifdef FIXED
    __tsan_release(&data);
#endif
    return write(ends[1], "x", 1) == 1 ? arg : NULL;
}
static void *consumer(void *arg) {
    char c;
    if (read(ends[0], &c, 1) != 1) abort();
#ifdef FIXED
    __tsan_acquire(&data);
#endif
    return data ? arg : NULL; // race(data)
}
int main(void) {
    if (pipe(ends) != 0) return 1;
    both(producer, consumer);
    return 0;
}

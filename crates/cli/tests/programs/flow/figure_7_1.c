int x; static void reduce(int i) {
  int done = 0;
  while (!done) {

    int prev = x;
    int curr = i * prev + i;
    int c = __sync_bool_compare_and_swap(&x, prev, curr);
    if (c) {
      done = 1;
    }
  }
}

/* Figure 7.1 of Burnim's thesis, with its lines: a reduction in arbitrary order. */
#include <pthread.h>
#include <stdio.h>

static void *iterate(void *number) {
  reduce((int)(long)number);
  return 0;
}

int main(void) {
  pthread_t threads[2];
  for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, iterate, (void *)(i + 1));
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  printf("%d\n", x);
  return 0;
}

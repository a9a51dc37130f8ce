// Two threads hold a lock each and then want the other's, under every schedule. With FIXED both take them in
// the same order. With an argument a signal ends the program after so many seconds.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

#ifdef FIXED
#define FIRST &a
#define SECOND &b
#define MEET
#else
#define FIRST &b
#define SECOND &a
#define MEET pthread_barrier_wait(&both)
#endif

static void *other(void *arg) {
  pthread_mutex_lock(FIRST);
  MEET;
  pthread_mutex_lock(SECOND);
  pthread_mutex_unlock(SECOND);
  pthread_mutex_unlock(FIRST);
  return arg;
}

int main(int argc, char **argv) {
  if (argc > 1)
    alarm(atoi(argv[1]));
  pthread_barrier_init(&both, 0, 2);
  pthread_t t;
  pthread_create(&t, 0, other, 0);
  pthread_mutex_lock(&a);
  MEET;
  pthread_mutex_lock(&b);
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  pthread_join(t, 0);
  return 0;
}

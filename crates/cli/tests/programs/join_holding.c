// A thread waits for the end of another one while it holds the lock that the other one needs. With FIXED it gives
// the lock back first. With an argument a signal ends the program after so many seconds.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long done;

static void *work(void *arg) {
  pthread_mutex_lock(&lock);
  done++;
  pthread_mutex_unlock(&lock);
  return arg;
}

int main(int argc, char **argv) {
  if (argc > 1)
    alarm(atoi(argv[1]));
  pthread_t t;
  pthread_mutex_lock(&lock);
  pthread_create(&t, 0, work, 0);
#ifdef FIXED
  pthread_mutex_unlock(&lock);
#endif
  pthread_join(t, 0);
#ifndef FIXED
  pthread_mutex_unlock(&lock);
#endif
  return done != 1;
}

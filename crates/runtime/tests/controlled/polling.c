// Threads that wait by looking, under a lock, with a clock or with a waiting thread in between. The program
// ends under every fair schedule; without FIXED the flag is taken back, and who did not look meanwhile looks
// for ever.
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, timer = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static bool ready;

static void *poller(void *arg) {
  for (;;) {
    pthread_mutex_lock(&m);
    bool stop = ready;
    pthread_mutex_unlock(&m);
    if (stop)
      return arg;
  }
}

static void set(bool value) {
  pthread_mutex_lock(&m);
  ready = value;
  pthread_mutex_unlock(&m);
}

static void *worker(void *arg) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  pthread_mutex_lock(&timer);
  while (pthread_cond_timedwait(&never, &timer, &until) == 0) {
  }
  pthread_mutex_unlock(&timer);
  set(true);
#ifndef FIXED
  set(false);
#endif
  return arg;
}

int main(void) {
  pthread_t pollers[2], w;
  for (int i = 0; i < 2; i++)
    pthread_create(&pollers[i], 0, poller, 0);
  pthread_create(&w, 0, worker, 0);
  for (int i = 0; i < 2; i++)
    pthread_join(pollers[i], 0);
  pthread_join(w, 0);
  return 0;
}

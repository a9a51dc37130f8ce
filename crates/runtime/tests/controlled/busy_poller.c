// A thread changes something in every round of its loop, and would keep another one from running.
#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static bool ready;
static long looked, worked;

static void *poller(void *arg) {
  for (;;) {
    pthread_mutex_lock(&m);
    looked++;
    bool stop = ready;
    pthread_mutex_unlock(&m);
    if (stop)
      return arg;
  }
}

static void *worker(void *arg) {
  for (int i = 0; i < 200; i++) {
    pthread_mutex_lock(&m);
    worked++;
    ready = i == 199;
    pthread_mutex_unlock(&m);
  }
  return arg;
}

int main(void) {
  pthread_t p, w;
  pthread_create(&p, 0, poller, 0);
  pthread_create(&w, 0, worker, 0);
  pthread_join(p, 0);
  pthread_join(w, 0);
  return 0;
}

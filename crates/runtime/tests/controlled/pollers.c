// Ten correct ways to wait by looking. The argument says which; two threads wait, and a third one ends that.
// The program ends with 0 under every fair schedule.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WAYS = 10 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t posted;
static bool ready;
static atomic_bool flag;
static atomic_int owner, sequence;
static int way;

static bool look(void) {
  pthread_mutex_lock(&m);
  bool result = ready;
  pthread_mutex_unlock(&m);
  return result;
}

static void pause_for(long nanoseconds) {
  struct timespec time = {0, nanoseconds};
  nanosleep(&time, NULL);
}

// Waits with a limit, and looks again when the time is over.
static void await_with_limit(void) {
  pthread_mutex_lock(&m);
  while (!ready) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec = (until.tv_nsec + 1000000) % 1000000000;
    pthread_cond_timedwait(&changed, &m, &until);
  }
  pthread_mutex_unlock(&m);
}

static void *wait_for_it(void *arg) {
  int nobody;
  switch (way) {
  case 0: // under a lock
    while (!look()) {
    }
    break;
  case 1: // on an atomic
    while (!atomic_load(&flag)) {
    }
    break;
  case 2: // with a yield
    while (!atomic_load(&flag)) sched_yield();
    break;
  case 3: // with a sleep
    while (!atomic_load(&flag)) usleep(100);
    break;
  case 4: // under a lock, with a sleep that grows
    for (long time = 1000; !look(); time *= 2) pause_for(time < 1000000 ? time : 1000000);
    break;
  case 5: // with a time limit
    await_with_limit();
    break;
  case 6: // for a lock that another thread holds
    while (pthread_mutex_trylock(&held) != 0) {
    }
    pthread_mutex_unlock(&held);
    break;
  case 7: // for a lock made of an atomic
    do nobody = 0;
    while (!atomic_compare_exchange_weak(&owner, &nobody, 1));
    atomic_store(&owner, 0);
    break;
  case 8: // for a semaphore
    while (sem_trywait(&posted) != 0) sched_yield();
    break;
  default: // for a number that others count on, with readers in between
    while (atomic_load(&sequence) < 3) {
      if (pthread_rwlock_tryrdlock(&rw) == 0) pthread_rwlock_unlock(&rw);
    }
  }
  return arg;
}

static void *end_it(void *arg) {
  pthread_mutex_lock(&m);
  ready = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&m);
  atomic_store(&flag, true);
  for (int i = 0; i < 3; i++) {
    pthread_rwlock_wrlock(&rw);
    atomic_fetch_add(&sequence, 1);
    pthread_rwlock_unlock(&rw);
  }
  sem_post(&posted);
  sem_post(&posted);
  atomic_store(&owner, 0);
  return arg;
}

int main(int argc, char **argv) {
  pthread_t waiting[2], ending;
  way = argc > 1 ? atoi(argv[1]) % WAYS : 0;
  sem_init(&posted, 0, 0);
  atomic_store(&owner, 2);
  pthread_mutex_lock(&held);
  for (int i = 0; i < 2; i++) pthread_create(&waiting[i], NULL, wait_for_it, NULL);
  pthread_create(&ending, NULL, end_it, NULL);
  pthread_join(ending, NULL);
  pthread_mutex_unlock(&held);
  for (int i = 0; i < 2; i++) pthread_join(waiting[i], NULL);
  return 0;
}

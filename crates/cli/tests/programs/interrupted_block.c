/* A block that another thread interrupts in every run: it reads before the other block writes, and writes after it.
 * OBSERVING: what is observed decides about the blocks. */
#include <pthread.h>
#include <selvedge.h>
#include <semaphore.h>

static sem_t read_it, written;
static int balance;

static void *interrupted(void *unused) {
    SELVEDGE_ATOMIC_BEGIN("deposit");
    int before = balance;
    sem_post(&read_it);
    sem_wait(&written);
    balance = before + 100;
    SELVEDGE_REGION_END();
    return unused;
}

int main(void) {
    pthread_t thread;
    sem_init(&read_it, 0, 0);
    sem_init(&written, 0, 0);
    pthread_create(&thread, 0, interrupted, 0);
    sem_wait(&read_it);
    SELVEDGE_ATOMIC_BEGIN("reset");
    balance = 0;
    SELVEDGE_REGION_END();
    sem_post(&written);
    pthread_join(thread, 0);
#ifdef OBSERVING
    SELVEDGE_OBSERVE("balance", balance);
#endif
    return 0;
}

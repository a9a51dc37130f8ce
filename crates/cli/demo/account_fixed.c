// A teller deposits under the lock; the auditor waits until the teller is done.
#include <pthread.h>

static long balance;
static pthread_mutex_t vault = PTHREAD_MUTEX_INITIALIZER;

static void *deposit(void *amount) {
    pthread_mutex_lock(&vault);
    balance += (long)amount;
    pthread_mutex_unlock(&vault);
    return 0;
}

static long audit(void) {
    return balance;
}

int main(void) {
    pthread_t teller;
    pthread_create(&teller, 0, deposit, (void *)100);
    pthread_join(teller, 0);
    long seen = audit();
    return seen < 0 || balance != 100;
}

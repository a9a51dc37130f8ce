/* Members of objects on the heap and of one with static storage, under a lock of the object: declared before, and
   behind the member. The twin pays interest without the lock. */
#include <pthread.h>
#include <stdlib.h>

struct account {
    long balance;
    int entries;
    pthread_mutex_t lock;
};

struct {
    pthread_mutex_t lock;
    unsigned sum : 24;
    void (*told)(long);
} total = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct account *accounts[2];

static void nobody(long amount) { (void)amount; }

static struct account *opened(long amount) {
    struct account *account = calloc(1, sizeof *account);
    pthread_mutex_init(&account->lock, 0);
    account->balance = amount;
    account->entries = 1;
    return account;
}

static void deposit(struct account *to, long amount) {
    pthread_mutex_lock(&to->lock);
    to->balance += amount;
    if (amount > 1000000) {
#ifdef PLANTED
        pthread_mutex_unlock(&to->lock);
        to->entries++; /* planted */
        pthread_mutex_lock(&to->lock);
#else
        to->entries++;
#endif
    }
    to->entries++;
    pthread_mutex_unlock(&to->lock);
}

static void *work(void *unused) {
    for (int i = 0; i < 8; i++) {
        deposit(accounts[i % 2], i);
        pthread_mutex_lock(&total.lock);
        total.sum += (unsigned)i;
        total.told = nobody;
        pthread_mutex_unlock(&total.lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        accounts[i] = opened(i);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return accounts[0]->balance < 0;
}

// A class with a lock of its own: a member function that relies on its caller, one that locks for it, one that is
// defined outside the class. The twin forgets the lock where nobody has come yet.
#include <pthread.h>

#include <cstdio>

class Account {
  public:
    Account() : balance(0), entries(0) { pthread_mutex_init(&mutex, nullptr); }
    ~Account() { pthread_mutex_destroy(&mutex); }
    void deposit(long amount) {
        pthread_mutex_lock(&mutex);
        add(amount);
        pthread_mutex_unlock(&mutex);
    }
    long read() const;
    void close() {
#ifdef PLANTED
        entries = 0; // planted
#else
        lock();
        entries = 0;
        unlock();
#endif
    }

  private:
    void add(long amount) {
        balance += amount;
        entries++;
    }
    long peek() const noexcept;
    void lock() const { pthread_mutex_lock(&mutex); }
    void unlock() const { pthread_mutex_unlock(&mutex); }

    long balance;
    int entries;
    mutable pthread_mutex_t mutex;
};

long Account::peek() const noexcept { return balance; }

long Account::read() const {
    lock();
    long now = peek();
    unlock();
    return now;
}

static Account *account;
static long visits;
static pthread_mutex_t visits_lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused) {
    for (long i = 0; i < 8; i++) {
        pthread_mutex_lock(&visits_lock);
        visits++;
        pthread_mutex_unlock(&visits_lock);
        account->deposit(i);
        if (account->read() < 0)
            account->close();
    }
    return unused;
}

int main() {
    account = new Account;
    pthread_t threads[2];
    for (pthread_t &thread : threads)
        pthread_create(&thread, nullptr, work, nullptr);
    for (pthread_t &thread : threads)
        pthread_join(thread, nullptr);
    std::printf("%ld\n", account->read());
    delete account;
    return 0;
}

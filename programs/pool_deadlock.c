// Shape: deadlock behind a thread pool. Jobs that lock two accounts are queued; the pool decides which
// worker runs which job, and when, and many harmless jobs run at the same lines.
// Idea: the factory and pool patterns that make object abstractions necessary (Joshi, Park, Sen and
// Naik, PLDI 2009).
// Shows: a hang, if two workers transfer between the same two accounts in opposite directions.
// Fixed: transfers take the locks in the order of the accounts.
#include "shape.h"

enum { ACCOUNTS = 6, WORKERS = 2, JOBS = 6 };
struct account {
    pthread_mutex_t lock;
    int money;
};
struct job {
    int from, to;
};

static struct account *accounts[ACCOUNTS];
static const struct job jobs[JOBS] = {{0, 1}, {2, 3}, {4, 5}, {3, 5}, {1, 0}, {2, 4}};
static int next;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;

static struct account *open_account(void) {
    struct account *a = malloc(sizeof *a);
    if (!a) abort();
    pthread_mutex_init(&a->lock, NULL);
    a->money = 10;
    return a;
}

static void transfer(struct account *from, struct account *to) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->money--;
    to->money++;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void run(const struct job *j) {
    int from = j->from, to = j->to;
#ifdef FIXED
    if (from > to) {
        pthread_mutex_lock(&accounts[to]->lock);
        pthread_mutex_lock(&accounts[from]->lock);
        accounts[from]->money--;
        accounts[to]->money++;
        pthread_mutex_unlock(&accounts[from]->lock);
        pthread_mutex_unlock(&accounts[to]->lock);
        return;
    }
#endif
    transfer(accounts[from], accounts[to]);
}

static void *worker(void *arg) {
    for (;;) {
        pthread_mutex_lock(&queue);
        int mine = next < JOBS ? next++ : -1;
        pthread_mutex_unlock(&queue);
        if (mine < 0) return arg;
        run(&jobs[mine]);
    }
}

int main(void) {
    pthread_t workers[WORKERS];
    int sum = 0;
    for (int i = 0; i < ACCOUNTS; i++) accounts[i] = open_account();
    for (int i = 0; i < WORKERS; i++) workers[i] = start(worker, NULL);
    for (int i = 0; i < WORKERS; i++) join(workers[i]);
    for (int i = 0; i < ACCOUNTS; i++) sum += accounts[i]->money;
    return sum == 10 * ACCOUNTS ? 0 : 1;
}

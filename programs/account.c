// Shape: check-then-act. The balance is looked at in one critical section and changed in another.
// Idea: the withdrawal that introductions to atomicity begin with (Flanagan and Qadeer, PLDI 2003).
// Shows: the assertion, if both withdrawals pass the check.
// Fixed: one critical section.
#include "shape.h"
#include "selvedge.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static int read_balance(void) {
    pthread_mutex_lock(&lock);
    int now = balance;
    pthread_mutex_unlock(&lock);
    return now;
}

static void change(int by) {
    pthread_mutex_lock(&lock);
    balance += by;
    pthread_mutex_unlock(&lock);
}

static void *withdraw(void *arg) {
    if (arg) note(20);
    SELVEDGE_ATOMIC_BEGIN("withdraw");
#ifdef FIXED
    pthread_mutex_lock(&lock);
    if (balance >= 80) balance -= 80;
    pthread_mutex_unlock(&lock);
#else
    if (read_balance() >= 80) change(-80);
#endif
    SELVEDGE_REGION_END();
    if (!arg) note(20);
    return NULL;
}

static void *print(void *arg) {
    assert(read_balance() <= 100);
    return arg;
}

int main(void) {
    static int late;
    pthread_t a = start(withdraw, NULL);
    join(start(print, NULL));
    pthread_t b = start(withdraw, &late);
    join(a);
    join(b);
    assert(read_balance() >= 0);
    return 0;
}

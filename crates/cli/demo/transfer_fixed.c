// A transfer locks both accounts under a lock of its own, so no other transfer is between them.
#include <pthread.h>

struct account { pthread_mutex_t lock; long balance; };
struct transfer { struct account *from, *to; };

static pthread_mutex_t teller = PTHREAD_MUTEX_INITIALIZER;
static struct account alice = { PTHREAD_MUTEX_INITIALIZER, 100 };
static struct account bob = { PTHREAD_MUTEX_INITIALIZER, 100 };

static void *move_one(void *argument) {
    struct transfer *t = argument;
    pthread_mutex_lock(&teller);
    pthread_mutex_lock(&t->from->lock);
    pthread_mutex_lock(&t->to->lock);
    pthread_mutex_unlock(&teller);
    t->from->balance -= 1;
    t->to->balance += 1;
    pthread_mutex_unlock(&t->to->lock);
    pthread_mutex_unlock(&t->from->lock);
    return 0;
}

int main(void) {
    struct transfer there = { &alice, &bob }, back = { &bob, &alice };
    pthread_t first, second;
    pthread_create(&first, 0, move_one, &there);
    pthread_create(&second, 0, move_one, &back);
    pthread_join(first, 0);
    pthread_join(second, 0);
    return alice.balance + bob.balance != 200;
}

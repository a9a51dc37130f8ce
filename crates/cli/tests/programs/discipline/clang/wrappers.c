/* Locks behind functions of another file, declared in a header. The twin forgets to leave on an error. */
#include "wrappers.h"

pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
int table[8];

void enter(struct counter *counter) { pthread_mutex_lock(&counter->mutex); }

void leave(struct counter *counter) { pthread_mutex_unlock(&counter->mutex); }

void table_enter(void)
{
    pthread_mutex_lock(&table_lock);
}

void table_leave(void)
{
    pthread_mutex_unlock(&table_lock);
}

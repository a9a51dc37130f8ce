#ifndef WRAPPERS_H
#define WRAPPERS_H
#include <pthread.h>

struct counter {
    pthread_mutex_t mutex;
    long value;
};

extern pthread_mutex_t table_lock;
extern int table[8];

void enter(struct counter *);
void leave(struct counter *);
void table_enter(void);
void table_leave(void);

#endif

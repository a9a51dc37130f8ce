// Where it is loaded decides how often it locks.
#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(void) {
    for (uintptr_t i = 0; i < ((uintptr_t)&lock >> 12) % 16 + 1; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

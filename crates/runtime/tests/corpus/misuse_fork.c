#include "corpus.h"
#include <sys/wait.h>
// The child of a fork gives back the lock that its parent took for it: that is no misuse, though the thread of the
// child has another number. A thread of the parent that gives it back does misuse it.
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void prepare(void) { pthread_mutex_lock(&m); } // race(foreign) optional
static void give_back(void) { pthread_mutex_unlock(&m); }
static void *foreign(void *unused) {
#ifndef FIXED
    pthread_mutex_unlock(&m); // race(foreign)
#endif
    return unused;
}
int main(void) {
    pthread_atfork(prepare, give_back, give_back);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    pthread_t thread;
    prepare();
    pthread_create(&thread, 0, foreign, 0);
    pthread_join(thread, 0);
#ifdef FIXED
    give_back();
#endif
    return status;
}

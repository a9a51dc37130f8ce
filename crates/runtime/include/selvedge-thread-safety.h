/*
 * POSIX locks for clang's thread safety analysis, without changes to the source:
 *
 *     clang -fsyntax-only -Wthread-safety -include selvedge-thread-safety.h file.c
 *
 * A mutex becomes a capability by a second declaration of its type, which C11 allows, and the lock functions
 * say what they do by second declarations of theirs.
 */
#ifndef SELVEDGE_THREAD_SAFETY_H
#define SELVEDGE_THREAD_SAFETY_H

#ifdef __clang__
#define SELVEDGE_THREAD_SAFETY
#include <pthread.h>

typedef pthread_mutex_t __attribute__((capability("mutex"))) pthread_mutex_t;
typedef pthread_rwlock_t __attribute__((capability("mutex"))) pthread_rwlock_t;
typedef pthread_spinlock_t __attribute__((capability("mutex"))) pthread_spinlock_t;

#ifdef __cplusplus
extern "C" {
#define SELVEDGE_QUIET noexcept
#else
#define SELVEDGE_QUIET
#endif
int pthread_mutex_lock(pthread_mutex_t *m) SELVEDGE_QUIET __attribute__((acquire_capability(*m)));
int pthread_mutex_trylock(pthread_mutex_t *m) SELVEDGE_QUIET
    __attribute__((try_acquire_capability(0, *m)));
int pthread_mutex_unlock(pthread_mutex_t *m) SELVEDGE_QUIET __attribute__((release_capability(*m)));
int pthread_rwlock_rdlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((acquire_shared_capability(*l)));
int pthread_rwlock_wrlock(pthread_rwlock_t *l) SELVEDGE_QUIET __attribute__((acquire_capability(*l)));
int pthread_rwlock_tryrdlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((try_acquire_shared_capability(0, *l)));
int pthread_rwlock_trywrlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((try_acquire_capability(0, *l)));
int pthread_rwlock_unlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((release_generic_capability(*l)));
int pthread_spin_lock(pthread_spinlock_t *l) SELVEDGE_QUIET __attribute__((acquire_capability(*l)));
int pthread_spin_trylock(pthread_spinlock_t *l) SELVEDGE_QUIET
    __attribute__((try_acquire_capability(0, *l)));
int pthread_spin_unlock(pthread_spinlock_t *l) SELVEDGE_QUIET
    __attribute__((release_capability(*l)));
#ifdef __cplusplus
}
#endif

/* The lock counts as held from here on: no other thread runs yet, or none runs any more. */
static inline void selvedge_alone_with(const pthread_mutex_t *lock)
    __attribute__((assert_capability(*lock))) __attribute__((no_thread_safety_analysis));
static inline void selvedge_alone_with(const pthread_mutex_t *lock) { (void)lock; }
#endif

#endif

/*
 * POSIX locks for clang's thread safety analysis, without changes to the source:
 *
 *     clang -fsyntax-only -Wthread-safety -include selvedge-thread-safety.h file.c
 *
 * A lock becomes a capability by a second declaration of its type, which C11 allows, and the lock functions
 * say what they do by second declarations of theirs. Only ever `-include` this file, and only for the analysis.
 */
#ifndef SELVEDGE_THREAD_SAFETY_H
#define SELVEDGE_THREAD_SAFETY_H

#ifdef __clang__
#define SELVEDGE_THREAD_SAFETY

/* This header comes before the first line of the source, which may still ask for more of the C library. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#include <pthread.h>
#undef _GNU_SOURCE
#else
#include <pthread.h>
#endif

typedef pthread_mutex_t __attribute__((capability("mutex"))) pthread_mutex_t;
typedef pthread_rwlock_t __attribute__((capability("mutex"))) pthread_rwlock_t;
typedef pthread_spinlock_t __attribute__((capability("mutex"))) pthread_spinlock_t;

#ifdef __cplusplus
extern "C" {
#define SELVEDGE_QUIET noexcept
#else
#define SELVEDGE_QUIET
#endif
struct timespec;
int pthread_mutex_lock(pthread_mutex_t *m) SELVEDGE_QUIET __attribute__((acquire_capability(*m)));
int pthread_mutex_trylock(pthread_mutex_t *m) SELVEDGE_QUIET
    __attribute__((try_acquire_capability(0, *m)));
int pthread_mutex_timedlock(pthread_mutex_t *__restrict m, const struct timespec *__restrict t)
    SELVEDGE_QUIET __attribute__((try_acquire_capability(0, *m)));
int pthread_mutex_unlock(pthread_mutex_t *m) SELVEDGE_QUIET __attribute__((release_capability(*m)));
int pthread_rwlock_rdlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((acquire_shared_capability(*l)));
int pthread_rwlock_wrlock(pthread_rwlock_t *l) SELVEDGE_QUIET __attribute__((acquire_capability(*l)));
int pthread_rwlock_tryrdlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((try_acquire_shared_capability(0, *l)));
int pthread_rwlock_trywrlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((try_acquire_capability(0, *l)));
int pthread_rwlock_timedrdlock(pthread_rwlock_t *__restrict l, const struct timespec *__restrict t)
    SELVEDGE_QUIET __attribute__((try_acquire_shared_capability(0, *l)));
int pthread_rwlock_timedwrlock(pthread_rwlock_t *__restrict l, const struct timespec *__restrict t)
    SELVEDGE_QUIET __attribute__((try_acquire_capability(0, *l)));
int pthread_rwlock_unlock(pthread_rwlock_t *l) SELVEDGE_QUIET
    __attribute__((release_generic_capability(*l)));
int pthread_spin_lock(pthread_spinlock_t *l) SELVEDGE_QUIET __attribute__((acquire_capability(*l)));
int pthread_spin_trylock(pthread_spinlock_t *l) SELVEDGE_QUIET
    __attribute__((try_acquire_capability(0, *l)));
int pthread_spin_unlock(pthread_spinlock_t *l) SELVEDGE_QUIET
    __attribute__((release_capability(*l)));
#ifdef __cplusplus
}
#define SELVEDGE_OVERLOADABLE
#else
#define SELVEDGE_OVERLOADABLE __attribute__((overloadable))
#endif

/* The lock counts as held from here on: no other thread runs yet, or none runs any more. */
#define SELVEDGE_ALONE_WITH(type) \
    static inline void SELVEDGE_OVERLOADABLE selvedge_alone_with(const type *lock) \
        __attribute__((assert_capability(*lock))) __attribute__((no_thread_safety_analysis)); \
    static inline void SELVEDGE_OVERLOADABLE selvedge_alone_with(const type *lock) { (void)lock; }
SELVEDGE_ALONE_WITH(pthread_mutex_t)
SELVEDGE_ALONE_WITH(pthread_rwlock_t)
SELVEDGE_ALONE_WITH(pthread_spinlock_t)
#undef SELVEDGE_ALONE_WITH
#endif

#endif

/* What a program can tell Selvedge about itself. In code that is not instrumented every annotation is
 * nothing at all (with -DSELVEDGE_ENABLE it is a test of a null pointer, so that a plain program can be
 * told about as well); with -DSELVEDGE_DISABLE it is nothing everywhere.
 *
 *   SELVEDGE_HAPPENS_BEFORE(p)  what this thread has done so far comes before …
 *   SELVEDGE_HAPPENS_AFTER(p)   … what a thread does after this, with the same p
 *   SELVEDGE_IGNORE_BEGIN()     accesses of this thread are not looked at …
 *   SELVEDGE_IGNORE_END()       … until here; pairs nest
 *   SELVEDGE_ATOMIC_BEGIN(name), SELVEDGE_DETERMINISTIC_BEGIN(name), SELVEDGE_REGION_END()
 *                               a region that claims to be atomic or deterministic; name is a literal
 */
#ifndef SELVEDGE_H
#define SELVEDGE_H

#if defined(__SANITIZE_THREAD__)
#define SELVEDGE_INSTRUMENTED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SELVEDGE_INSTRUMENTED
#endif
#endif

#if defined(SELVEDGE_DISABLE) || !defined(__GNUC__) || \
    !(defined(SELVEDGE_INSTRUMENTED) || defined(SELVEDGE_ENABLE))
#define SELVEDGE_CALL(function, arguments) ((void)0)
#else
#ifdef __cplusplus
extern "C" {
#endif
extern void selvedge_happens_before(const volatile void *) __attribute__((weak));
extern void selvedge_happens_after(const volatile void *) __attribute__((weak));
extern void selvedge_ignore_begin(void) __attribute__((weak));
extern void selvedge_ignore_end(void) __attribute__((weak));
extern void selvedge_region_enter(const char *, int) __attribute__((weak));
extern void selvedge_region_exit(void) __attribute__((weak));
#ifdef __cplusplus
}
#endif
#define SELVEDGE_CALL(function, arguments) ((function) ? (function) arguments : (void)0)
#endif

#define SELVEDGE_HAPPENS_BEFORE(p) SELVEDGE_CALL(selvedge_happens_before, (p))
#define SELVEDGE_HAPPENS_AFTER(p) SELVEDGE_CALL(selvedge_happens_after, (p))
#define SELVEDGE_IGNORE_BEGIN() SELVEDGE_CALL(selvedge_ignore_begin, ())
#define SELVEDGE_IGNORE_END() SELVEDGE_CALL(selvedge_ignore_end, ())
#define SELVEDGE_ATOMIC_BEGIN(name) SELVEDGE_CALL(selvedge_region_enter, ("" name, 0))
#define SELVEDGE_DETERMINISTIC_BEGIN(name) SELVEDGE_CALL(selvedge_region_enter, ("" name, 1))
#define SELVEDGE_REGION_END() SELVEDGE_CALL(selvedge_region_exit, ())

/* What guards what, for clang's thread safety analysis (clang -Wthread-safety -include
   selvedge-thread-safety.h); nothing for other compilers. */
#if defined(__clang__) && defined(SELVEDGE_THREAD_SAFETY)
#define SELVEDGE_GUARDED_BY(lock) __attribute__((guarded_by(lock)))
#define SELVEDGE_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define SELVEDGE_ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define SELVEDGE_RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
#define SELVEDGE_ALONE(lock) selvedge_alone_with(lock)
#else
#define SELVEDGE_GUARDED_BY(lock)
#define SELVEDGE_REQUIRES(...)
#define SELVEDGE_ACQUIRES(...)
#define SELVEDGE_RELEASES(...)
#define SELVEDGE_ALONE(lock) ((void)0)
#endif

#endif

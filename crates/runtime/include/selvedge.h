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
 *
 * A deterministic region is a block whose executions are compared. Two executions that agree in what the
 * block assumes must agree in what it ensures, whatever the schedule; names are literals:
 *
 *   SELVEDGE_ASSUME(name, x), SELVEDGE_ENSURE(name, x)       x is arithmetic and compared exactly
 *   …_BY(name, x, predicate)                                 compared by a predicate, see below
 *   …_ARRAY(name, p, n), …_ARRAY_BY(name, p, n, predicate)   n elements of arithmetic type
 *   …_BYTES(name, p, size), …_BYTES_BY(name, p, size, predicate)
 *   …_STRING(name, s)                                        a terminated string
 *   SELVEDGE_STATE(name, lvalue), SELVEDGE_STATE_ARRAY(name, p, n)
 *                               recorded here and when the block ends; `selvedge infer` uses it
 *   SELVEDGE_CHOOSE(n)          0 … n-1, part of the schedule; 0 where nothing controls the program
 *   SELVEDGE_BLOCK_TOKEN()      the block that this thread is in …
 *   SELVEDGE_BLOCK_JOIN(token)  … is from now on that of this thread, which was started before it
 *
 * What atomic regions let see must be as in some execution in which each of them runs alone:
 *
 *   SELVEDGE_OBSERVE(name, x), and …_BY, …_ARRAY, …_ARRAY_BY, …_BYTES, …_STRING as above; anywhere in the program
 *   SELVEDGE_LINEARIZATION_POINT()        here the region of this thread takes effect: which order is tried first
 *   SELVEDGE_DISTINGUISHED(expression)    the order of its accesses is that of the regions; a hint as well
 *
 * Parallel as if sequential (docs/ndseq.md), in programs built with --selvedge-flow; names are literals:
 *
 *   SELVEDGE_FOCUS(pointer, size)     what these bytes hold when control is here is part of the result
 *   SELVEDGE_TASK_BEGIN(name)         a task, until SELVEDGE_REGION_END()
 *   SELVEDGE_STAR(condition)          a sequential execution may take it for false
 *   SELVEDGE_STAR_BLOCK(name) { … }   a sequential execution may leave the block out; may be left by break, continue,
 *                                     return, goto
 *   SELVEDGE_COMMUTES_BEGIN(name)     commutes with others of that name, until SELVEDGE_REGION_END(); believed
 *   SELVEDGE_LAZY_BEGIN(name)         initialisation that whichever task comes first does, until SELVEDGE_REGION_END()
 *
 * Predicates: SELVEDGE_EXACT, SELVEDGE_WITHIN(e), SELVEDGE_RELATIVE(e), SELVEDGE_ULPS(n), SELVEDGE_SET,
 * SELVEDGE_MULTISET, and SELVEDGE_SAME(f) with int f(const void *a, size_t a_size, const void *b,
 * size_t b_size), which is not 0 if the two are the same. f must not synchronize.
 */
#ifndef SELVEDGE_H
#define SELVEDGE_H

#include <stddef.h>

#if defined(__SANITIZE_THREAD__) || defined(__SELVEDGE_FLOW__)
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
#define SELVEDGE_ACTIVE
#ifdef __cplusplus
extern "C" {
#endif
struct selvedge_value;
extern void selvedge_happens_before(const volatile void *) __attribute__((weak));
extern void selvedge_happens_after(const volatile void *) __attribute__((weak));
extern void selvedge_ignore_begin(void) __attribute__((weak));
extern void selvedge_ignore_end(void) __attribute__((weak));
extern void selvedge_region_enter(const char *, int) __attribute__((weak));
extern void selvedge_region_exit(void) __attribute__((weak));
extern void selvedge_hand_over(const struct selvedge_value *) __attribute__((weak));
extern unsigned selvedge_choose(unsigned) __attribute__((weak));
extern unsigned long long selvedge_block_token(void) __attribute__((weak));
extern void selvedge_block_join(unsigned long long) __attribute__((weak));
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
#define SELVEDGE_TASK_BEGIN(name) SELVEDGE_CALL(selvedge_region_enter, ("" name, 4))
#define SELVEDGE_COMMUTES_BEGIN(name) SELVEDGE_CALL(selvedge_region_enter, ("" name, 8))
#define SELVEDGE_LAZY_BEGIN(name) SELVEDGE_CALL(selvedge_region_enter, ("" name, 16))
#define SELVEDGE_REGION_END() SELVEDGE_CALL(selvedge_region_exit, ())

/* The calls of a star stand by themselves in the bitcode, so they are not tested for null. */
#if defined(SELVEDGE_ACTIVE) && defined(__SELVEDGE_FLOW__)
#ifdef __cplusplus
extern "C" {
#endif
extern int selvedge_star_enter(const char *);
extern int selvedge_star_value(int);
extern void selvedge_focus(const volatile void *, size_t);
#ifdef __cplusplus
}
#endif
#define SELVEDGE_STAR(condition) selvedge_star_value(selvedge_star_enter(#condition) && (condition))
#define SELVEDGE_STAR_BLOCK(name) if (selvedge_star_enter("" name))
#define SELVEDGE_FOCUS(pointer, size) selvedge_focus((pointer), (size))
#else
#define SELVEDGE_STAR(condition) (condition)
#define SELVEDGE_STAR_BLOCK(name) if (1)
#define SELVEDGE_FOCUS(pointer, size) ((void)0)
#endif

/* What guards what, for clang's thread safety analysis (clang -Wthread-safety -include
   selvedge-thread-safety.h); nothing for other compilers, and nothing without that header. SELVEDGE_ALONE stands at
   the head of a function, without a semicolon: no other thread runs yet, or none runs any more. */
#if defined(__clang__) && defined(SELVEDGE_THREAD_SAFETY)
#define SELVEDGE_GUARDED_BY(lock) __attribute__((guarded_by(lock)))
#define SELVEDGE_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define SELVEDGE_REQUIRES_SHARED(...) __attribute__((requires_shared_capability(__VA_ARGS__)))
#define SELVEDGE_ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define SELVEDGE_ACQUIRES_SHARED(...) __attribute__((acquire_shared_capability(__VA_ARGS__)))
#define SELVEDGE_RELEASES(...) __attribute__((release_generic_capability(__VA_ARGS__)))
#define SELVEDGE_ALONE(lock) selvedge_alone_with(lock);
#else
#define SELVEDGE_GUARDED_BY(lock)
#define SELVEDGE_REQUIRES(...)
#define SELVEDGE_REQUIRES_SHARED(...)
#define SELVEDGE_ACQUIRES(...)
#define SELVEDGE_ACQUIRES_SHARED(...)
#define SELVEDGE_RELEASES(...)
#define SELVEDGE_ALONE(lock)
#endif

/* When two values count as the same. The numbers are part of the interface to the runtime. */
struct selvedge_predicate {
    unsigned kind;
    double bound;
    int (*same)(const void *, size_t, const void *, size_t);
};

static inline struct selvedge_predicate selvedge_predicate_of(
    unsigned kind, double bound, int (*same)(const void *, size_t, const void *, size_t)) {
    struct selvedge_predicate predicate;
    predicate.kind = kind;
    predicate.bound = bound;
    predicate.same = same;
    return predicate;
}

#define SELVEDGE_EXACT selvedge_predicate_of(0, 0, 0)
#define SELVEDGE_WITHIN(e) selvedge_predicate_of(1, (e), 0)
#define SELVEDGE_RELATIVE(e) selvedge_predicate_of(2, (e), 0)
#define SELVEDGE_ULPS(n) selvedge_predicate_of(3, (double)(n), 0)
#define SELVEDGE_SET selvedge_predicate_of(4, 0, 0)
#define SELVEDGE_MULTISET selvedge_predicate_of(5, 0, 0)
#define SELVEDGE_SAME(f) selvedge_predicate_of(6, 0, (f))

/* What a call hands over: `count` elements of a type. */
struct selvedge_value {
    const char *name;
    const void *data;
    size_t count;
    /* Where it is handed over; 0 for the place of the call. */
    const void *place;
    /* 1 assume, 2 ensure, 3 state; with 16 an array. */
    unsigned call;
    unsigned type;
    struct selvedge_predicate same;
};

static inline struct selvedge_value selvedge_value_of(unsigned call, const char *name, unsigned type,
                                                      const void *data, size_t count,
                                                      struct selvedge_predicate same) {
    struct selvedge_value value;
    value.name = name;
    value.data = data;
    value.count = count;
    value.place = 0;
    value.call = call;
    value.type = type;
    value.same = same;
    return value;
}

#define SELVEDGE_BYTES_TYPE 15
#define SELVEDGE_TEXT_TYPE 16

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 selvedge_int128;
__extension__ typedef unsigned __int128 selvedge_uint128;
#endif

#ifdef __cplusplus
extern "C++" {
/* The number of an arithmetic type. Other types have none, and do not compile. */
template <class T> struct selvedge_type_of;
template <class T> struct selvedge_type_of<volatile T> : selvedge_type_of<T> {};
#define SELVEDGE_TYPE_NUMBER(type, value) \
    template <> struct selvedge_type_of<type> { static const unsigned number = value; }
SELVEDGE_TYPE_NUMBER(bool, 1);
SELVEDGE_TYPE_NUMBER(char, static_cast<char>(-1) < 0 ? 2 : 7);
SELVEDGE_TYPE_NUMBER(signed char, 2);
SELVEDGE_TYPE_NUMBER(short, 3);
SELVEDGE_TYPE_NUMBER(int, 4);
SELVEDGE_TYPE_NUMBER(long, sizeof(long) == 8 ? 5 : 4);
SELVEDGE_TYPE_NUMBER(long long, 5);
SELVEDGE_TYPE_NUMBER(unsigned char, 7);
SELVEDGE_TYPE_NUMBER(unsigned short, 8);
SELVEDGE_TYPE_NUMBER(unsigned, 9);
SELVEDGE_TYPE_NUMBER(unsigned long, sizeof(long) == 8 ? 10 : 9);
SELVEDGE_TYPE_NUMBER(unsigned long long, 10);
SELVEDGE_TYPE_NUMBER(wchar_t, sizeof(wchar_t) == 4 ? 4 : 3);
SELVEDGE_TYPE_NUMBER(float, 12);
SELVEDGE_TYPE_NUMBER(double, 13);
SELVEDGE_TYPE_NUMBER(long double, 14);
#ifdef __SIZEOF_INT128__
SELVEDGE_TYPE_NUMBER(selvedge_int128, 6);
SELVEDGE_TYPE_NUMBER(selvedge_uint128, 11);
#endif
#if __cplusplus >= 201103L
SELVEDGE_TYPE_NUMBER(char16_t, 8);
SELVEDGE_TYPE_NUMBER(char32_t, 9);
#endif
#undef SELVEDGE_TYPE_NUMBER
template <class T> inline unsigned selvedge_type_number(const T &) {
    return selvedge_type_of<T>::number;
}
}
#define SELVEDGE_TYPE(x) selvedge_type_number(x)
#define SELVEDGE_COPY(x) const auto selvedge_copy = (x)
#else
#ifdef __SIZEOF_INT128__
#define SELVEDGE_WIDE_TYPES , selvedge_int128: 6, selvedge_uint128: 11
#else
#define SELVEDGE_WIDE_TYPES
#endif
#define SELVEDGE_TYPE(x)                                                                    \
    _Generic((x), _Bool: 1, char: (char)-1 < 0 ? 2 : 7, signed char: 2, short: 3, int: 4,   \
        long: sizeof(long) == 8 ? 5 : 4, long long: 5, unsigned char: 7, unsigned short: 8, \
        unsigned: 9, unsigned long: sizeof(long) == 8 ? 10 : 9, unsigned long long: 10,     \
        float: 12, double: 13, long double: 14 SELVEDGE_WIDE_TYPES)
#define SELVEDGE_COPY(x) const __typeof__(x) selvedge_copy = (x)
#endif

#ifdef SELVEDGE_ACTIVE
#define SELVEDGE_HAND_OVER(call, name, type, data, count, predicate)                       \
    do {                                                                                   \
        if (selvedge_hand_over) {                                                          \
            const struct selvedge_value selvedge_handed =                                  \
                selvedge_value_of((call), "" name, (unsigned)(type), (const void *)(data), \
                                  (count), predicate);                                     \
            selvedge_hand_over(&selvedge_handed);                                          \
        }                                                                                  \
    } while (0)
#define SELVEDGE_SCALAR(call, name, x, predicate)                                                   \
    do {                                                                                            \
        SELVEDGE_COPY(x);                                                                           \
        SELVEDGE_HAND_OVER(call, name, SELVEDGE_TYPE(selvedge_copy), &selvedge_copy, 1, predicate); \
    } while (0)
#define SELVEDGE_ARRAY(call, name, p, n, predicate) \
    SELVEDGE_HAND_OVER((call) | 16, name, SELVEDGE_TYPE(*(p)), (p), (n), predicate)
#define SELVEDGE_RAW(call, name, type, p, n, predicate) \
    SELVEDGE_HAND_OVER(call, name, type, (p), (n), predicate)
#define SELVEDGE_STATE(name, lvalue) \
    SELVEDGE_HAND_OVER(3, name, SELVEDGE_TYPE(lvalue), &(lvalue), 1, SELVEDGE_EXACT)
#define SELVEDGE_CHOOSE(n) (selvedge_choose ? selvedge_choose(n) : 0u)
#define SELVEDGE_BLOCK_TOKEN() (selvedge_block_token ? selvedge_block_token() : 0ull)
#define SELVEDGE_BLOCK_JOIN(token) SELVEDGE_CALL(selvedge_block_join, (token))
#else
#define SELVEDGE_SCALAR(call, name, x, predicate) ((void)0)
#define SELVEDGE_ARRAY(call, name, p, n, predicate) ((void)0)
#define SELVEDGE_RAW(call, name, type, p, n, predicate) ((void)0)
#define SELVEDGE_STATE(name, lvalue) ((void)0)
#define SELVEDGE_CHOOSE(n) ((void)sizeof(n), 0u)
#define SELVEDGE_BLOCK_TOKEN() 0ull
#define SELVEDGE_BLOCK_JOIN(token) ((void)sizeof(token))
#endif

#define SELVEDGE_ASSUME(name, x) SELVEDGE_SCALAR(1, name, x, SELVEDGE_EXACT)
#define SELVEDGE_ENSURE(name, x) SELVEDGE_SCALAR(2, name, x, SELVEDGE_EXACT)
#define SELVEDGE_ASSUME_BY(name, x, predicate) SELVEDGE_SCALAR(1, name, x, predicate)
#define SELVEDGE_ENSURE_BY(name, x, predicate) SELVEDGE_SCALAR(2, name, x, predicate)
#define SELVEDGE_ASSUME_ARRAY(name, p, n) SELVEDGE_ARRAY(1, name, p, n, SELVEDGE_EXACT)
#define SELVEDGE_ENSURE_ARRAY(name, p, n) SELVEDGE_ARRAY(2, name, p, n, SELVEDGE_EXACT)
#define SELVEDGE_ASSUME_ARRAY_BY(name, p, n, predicate) SELVEDGE_ARRAY(1, name, p, n, predicate)
#define SELVEDGE_ENSURE_ARRAY_BY(name, p, n, predicate) SELVEDGE_ARRAY(2, name, p, n, predicate)
#define SELVEDGE_ASSUME_BYTES(name, p, size) \
    SELVEDGE_RAW(1, name, SELVEDGE_BYTES_TYPE, p, size, SELVEDGE_EXACT)
#define SELVEDGE_ENSURE_BYTES(name, p, size) \
    SELVEDGE_RAW(2, name, SELVEDGE_BYTES_TYPE, p, size, SELVEDGE_EXACT)
#define SELVEDGE_ASSUME_BYTES_BY(name, p, size, predicate) \
    SELVEDGE_RAW(1, name, SELVEDGE_BYTES_TYPE, p, size, predicate)
#define SELVEDGE_ENSURE_BYTES_BY(name, p, size, predicate) \
    SELVEDGE_RAW(2, name, SELVEDGE_BYTES_TYPE, p, size, predicate)
#define SELVEDGE_ASSUME_STRING(name, s) \
    SELVEDGE_RAW(1, name, SELVEDGE_TEXT_TYPE, s, __builtin_strlen(s), SELVEDGE_EXACT)
#define SELVEDGE_ENSURE_STRING(name, s) \
    SELVEDGE_RAW(2, name, SELVEDGE_TEXT_TYPE, s, __builtin_strlen(s), SELVEDGE_EXACT)
#define SELVEDGE_STATE_ARRAY(name, p, n) SELVEDGE_ARRAY(3, name, p, n, SELVEDGE_EXACT)

#define SELVEDGE_OBSERVE(name, x) SELVEDGE_SCALAR(4, name, x, SELVEDGE_EXACT)
#define SELVEDGE_OBSERVE_BY(name, x, predicate) SELVEDGE_SCALAR(4, name, x, predicate)
#define SELVEDGE_OBSERVE_ARRAY(name, p, n) SELVEDGE_ARRAY(4, name, p, n, SELVEDGE_EXACT)
#define SELVEDGE_OBSERVE_ARRAY_BY(name, p, n, predicate) SELVEDGE_ARRAY(4, name, p, n, predicate)
#define SELVEDGE_OBSERVE_BYTES(name, p, size) \
    SELVEDGE_RAW(4, name, SELVEDGE_BYTES_TYPE, p, size, SELVEDGE_EXACT)
#define SELVEDGE_OBSERVE_STRING(name, s) \
    SELVEDGE_RAW(4, name, SELVEDGE_TEXT_TYPE, s, __builtin_strlen(s), SELVEDGE_EXACT)
#define SELVEDGE_LINEARIZATION_POINT() SELVEDGE_RAW(5, "", SELVEDGE_BYTES_TYPE, "", 0, SELVEDGE_EXACT)

#ifdef SELVEDGE_ACTIVE
static inline __attribute__((unused)) void selvedge_indistinct(const int *unused) {
    (void)unused;
    SELVEDGE_RAW(7, "", SELVEDGE_BYTES_TYPE, "", 0, SELVEDGE_EXACT);
}
#define SELVEDGE_DISTINGUISHED(expression)                                                       \
    __extension__({                                                                              \
        __attribute__((cleanup(selvedge_indistinct), unused)) const int selvedge_distinguishes = 1; \
        SELVEDGE_RAW(6, "", SELVEDGE_BYTES_TYPE, "", 0, SELVEDGE_EXACT);                         \
        expression;                                                                              \
    })
#else
#define SELVEDGE_DISTINGUISHED(expression) (expression)
#endif

#endif

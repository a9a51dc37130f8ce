/* OpenSHMEM: what its calls access, what completes them, and what they order. `oshcc` compiles this beside the rest, for
   programs that use OpenSHMEM. */
#define _GNU_SOURCE
#include "common.h"
#include <link.h>
#include <pshmem.h>
#include <string.h>

/* Types of one class and size are one type to the rules. */
enum { WHOLE = 1, FLOATING = 3 };
#define BASIC(CLASS, SIZE) ((uint64_t)(CLASS) << 16 | (uint64_t)(SIZE))

/* Communicators of active sets have numbers of their own, and so have contexts. */
static uint64_t set_of(int start, int log_stride, int size) {
    return (uint64_t)1 << 60 | (uint64_t)(uint32_t)start << 32 | (uint64_t)(uint32_t)log_stride << 24 | (uint32_t)size;
}

static uint64_t context_of(shmem_ctx_t ctx) {
    return (uint64_t)1 << 62 | (ctx == SHMEM_CTX_DEFAULT ? 0 : (uint64_t)(uintptr_t)ctx & 0xffffffffffff);
}

static uint64_t address(const volatile void *at) {
    return (uint64_t)(uintptr_t)at;
}

/* The static variables of the program are symmetric: the first writable part of the program is a window. */
static int find_data(struct dl_phdr_info *info, size_t size, void *found) {
    uint64_t *range = found;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        range[0] = info->dlpi_addr + part->p_vaddr;
        range[1] = part->p_memsz;
        break;
    }
    return 1; /* The first module is the program. */
}

static uint64_t allocations;

static void up(void) {
    uint64_t range[2] = {0, 0};
    if (sv_up)
        return;
    sv_set_up();
    dl_iterate_phdr(find_data, range);
    sv_symmetric(++allocations, range[0], range[1]);
    PMPI_Barrier(MPI_COMM_WORLD);
}

#define INIT(CALL)                                                                                                     \
    sv_inside++;                                                                                                       \
    sv_enter((uintptr_t)__builtin_return_address(0));                                                                  \
    CALL;                                                                                                              \
    up();                                                                                                              \
    sv_leave();                                                                                                        \
    sv_inside--;

void shmem_init(void) {
    INIT(pshmem_init())
}

int shmem_init_thread(int requested, int *provided) {
    int result;
    INIT(result = pshmem_init_thread(requested, provided))
    return result;
}

void start_pes(int npes) {
    INIT(pshmem_init())
}

/* Everything in the default context is complete, and all ranks are here. */
#define BARRIER(OUTER, QUIET, CALL)                                                                                    \
    uint32_t k = 0;                                                                                                    \
    if (OUTER) {                                                                                                       \
        if (QUIET) {                                                                                                   \
            sv_hold(SV_FLUSH, context_of(SHMEM_CTX_DEFAULT), -1);                                                      \
            sv_complete(SV_FLUSH, context_of(SHMEM_CTX_DEFAULT), -1);                                                  \
        }                                                                                                              \
        k = sv_barrier_enter();                                                                                        \
    }                                                                                                                  \
    CALL;                                                                                                              \
    if (OUTER) {                                                                                                       \
        sv_barrier_leave(k);                                                                                           \
        sv_exchange();                                                                                                 \
    }

void shmem_finalize(void) {
    ENTER;
    if (outer) {
        BARRIER(1, 1, PMPI_Barrier(MPI_COMM_WORLD))
        sv_tear_down();
    }
    pshmem_finalize();
    LEAVE;
}

void shmem_barrier_all(void) {
    ENTER;
    BARRIER(outer, 1, pshmem_barrier_all())
    LEAVE;
}

void shmem_sync_all(void) {
    ENTER;
    BARRIER(outer, 0, pshmem_sync_all())
    LEAVE;
}

/* An operation of an active set. A rank whose part others need gives; a rank that needs the parts of others takes. */
struct set {
    uint64_t number;
    uint32_t k;
    int all, takes;
};

static struct set enter(int outer, int start, int log_stride, int size, int gives, int takes) {
    struct set s = {set_of(start, log_stride, size), 0, 0, outer && takes};
    if (!outer)
        return s;
    s.all = size == sv_world_size && gives && takes;
    s.k = s.all ? sv_barrier_enter() : sv_collective_enter(s.number, gives);
    return s;
}

static void leave(int outer, struct set s) {
    if (outer && s.all) {
        sv_barrier_leave(s.k);
        sv_exchange();
    } else if (s.takes) {
        sv_collective_leave(s.number, s.k);
    }
}

void shmem_barrier(int start, int log_stride, int size, long *work) {
    ENTER;
    if (outer) {
        sv_hold(SV_FLUSH, context_of(SHMEM_CTX_DEFAULT), -1);
        sv_complete(SV_FLUSH, context_of(SHMEM_CTX_DEFAULT), -1);
    }
    struct set set = enter(outer, start, log_stride, size, 1, 1);
    pshmem_barrier(start, log_stride, size, work);
    leave(outer, set);
    LEAVE;
}

void shmem_sync(int start, int log_stride, int size, long *work) {
    ENTER;
    struct set set = enter(outer, start, log_stride, size, 1, 1);
    pshmem_sync(start, log_stride, size, work);
    leave(outer, set);
    LEAVE;
}

/* The symmetric heap. To allocate and to free are barriers. */
#define ALLOCATE(NAME, PARAMETERS, CALL, SIZE)                                                                         \
    void *NAME PARAMETERS {                                                                                            \
        ENTER;                                                                                                         \
        void *at;                                                                                                      \
        BARRIER(outer, 1, at = CALL)                                                                                   \
        if (outer && at) {                                                                                             \
            sv_symmetric(++allocations, address(at), SIZE);                                                            \
            PMPI_Barrier(MPI_COMM_WORLD);                                                                              \
        }                                                                                                              \
        LEAVE;                                                                                                         \
        return at;                                                                                                     \
    }

ALLOCATE(shmem_malloc, (size_t size), pshmem_malloc(size), size)
ALLOCATE(shmem_calloc, (size_t n, size_t size), pshmem_calloc(n, size), n *size)
ALLOCATE(shmem_align, (size_t alignment, size_t size), pshmem_align(alignment, size), size)

void shmem_free(void *at) {
    ENTER;
    if (outer && at)
        sv_asymmetric(address(at));
    BARRIER(outer, 1, pshmem_free(at))
    LEAVE;
}

/* What was put before a fence has arrived where a flag that is put after it has, so it no longer counts as in flight
   when pairs are tested, as after a quiet. */
#define COMPLETES(NAME, PARAMETERS, CALL, CONTEXT, DONE)                                                               \
    void NAME PARAMETERS {                                                                                             \
        ENTER;                                                                                                         \
        if (outer)                                                                                                     \
            sv_hold(SV_FLUSH, context_of(CONTEXT), -1);                                                                \
        CALL;                                                                                                          \
        if (outer)                                                                                                     \
            DONE(context_of(CONTEXT));                                                                                 \
        LEAVE;                                                                                                         \
    }

COMPLETES(shmem_quiet, (void), pshmem_quiet(), SHMEM_CTX_DEFAULT, sv_quiet)
COMPLETES(shmem_ctx_quiet, (shmem_ctx_t ctx), pshmem_ctx_quiet(ctx), ctx, sv_quiet)
COMPLETES(shmem_ctx_destroy, (shmem_ctx_t ctx), pshmem_ctx_destroy(ctx), ctx, sv_quiet)
COMPLETES(shmem_fence, (void), pshmem_fence(), SHMEM_CTX_DEFAULT, sv_fence)
COMPLETES(shmem_ctx_fence, (shmem_ctx_t ctx), pshmem_ctx_fence(ctx), ctx, sv_fence)

void shmem_set_lock(volatile long *lock) {
    ENTER;
    pshmem_set_lock(lock);
    if (outer)
        sv_shmem_lock(address(lock), 1);
    LEAVE;
}

int shmem_test_lock(volatile long *lock) {
    ENTER;
    int busy = pshmem_test_lock(lock);
    if (outer && !busy)
        sv_shmem_lock(address(lock), 1);
    LEAVE;
    return busy;
}

void shmem_clear_lock(volatile long *lock) {
    ENTER;
    if (outer) {
        /* It completes what is in the default context. */
        sv_hold(SV_FLUSH, context_of(SHMEM_CTX_DEFAULT), -1);
        sv_quiet(context_of(SHMEM_CTX_DEFAULT));
        sv_shmem_lock(address(lock), 0);
    }
    pshmem_clear_lock(lock);
    LEAVE;
}

/* A call that accesses `n` elements of a size at another rank, `stride` elements apart, and as many at the origin, unless
   it has no memory there. `CALL` is made between what comes before and what comes after. */
#define ACCESS(NAME, CONTEXT, PE, REMOTE, SIZE, CLASS, N, STRIDE, LOCAL, LOCAL_STRIDE, VALUE, CALL)                    \
    struct sv_shmem call = {NAME,          context_of(CONTEXT), (uint64_t)(PE), BASIC(CLASS, SIZE),                    \
                            address(REMOTE), (uint64_t)(SIZE),    (uint64_t)(N),  (int64_t)(STRIDE),                   \
                            address(LOCAL),  (int64_t)(LOCAL_STRIDE)};                                                 \
    call.value = VALUE;                                                                                                \
    int turn = outer ? sv_shmem_before(&call) : 0;                                                                     \
    CALL;                                                                                                              \
    if (outer)                                                                                                         \
        sv_shmem(&call);                                                                                               \
    if (turn) {                                                                                                        \
        pshmem_quiet();                                                                                                \
        sv_made();                                                                                                     \
    }

/* A value that a rank may wait for: the element, if there is one and it is not too large. */
#define NO_VALUE ((struct sv_value){0, 0})
#define UPDATED ((struct sv_value){2, 0})

static struct sv_value value_of(const void *at, size_t size, size_t n) {
    struct sv_value value = {0, 0};
    if (n == 1 && size <= sizeof value.bits) {
        value.is = 1;
        memcpy(&value.bits, at, size);
    }
    return value;
}

/* `C` and `CTX` are the parameter and the argument for a context, if there is one. */
#define TYPED_(PRE, C, CTX, T, TYPE, CLASS, CONTEXT)                                                                   \
    void shmem_##PRE##T##_put(C TYPE *to, const TYPE *from, size_t n, int pe) {                                        \
        ENTER;                                                                                                         \
        ACCESS("shmem_put", CONTEXT, pe, to, sizeof(TYPE), CLASS, n, 1, from, 1, value_of(from, sizeof(TYPE), n),      \
               pshmem_##PRE##T##_put(CTX to, from, n, pe))                                                             \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##T##_put_nbi(C TYPE *to, const TYPE *from, size_t n, int pe) {                                    \
        ENTER;                                                                                                         \
        ACCESS("shmem_put_nbi", CONTEXT, pe, to, sizeof(TYPE), CLASS, n, 1, from, 1, value_of(from, sizeof(TYPE), n),  \
               pshmem_##PRE##T##_put_nbi(CTX to, from, n, pe))                                                         \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##T##_get(C TYPE *to, const TYPE *from, size_t n, int pe) {                                        \
        ENTER;                                                                                                         \
        ACCESS("shmem_get", CONTEXT, pe, from, sizeof(TYPE), CLASS, n, 1, to, 1, NO_VALUE,                             \
               pshmem_##PRE##T##_get(CTX to, from, n, pe))                                                             \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##T##_get_nbi(C TYPE *to, const TYPE *from, size_t n, int pe) {                                    \
        ENTER;                                                                                                         \
        ACCESS("shmem_get_nbi", CONTEXT, pe, from, sizeof(TYPE), CLASS, n, 1, to, 1, NO_VALUE,                         \
               pshmem_##PRE##T##_get_nbi(CTX to, from, n, pe))                                                         \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##T##_iput(C TYPE *to, const TYPE *from, ptrdiff_t tst, ptrdiff_t sst, size_t n, int pe) {         \
        ENTER;                                                                                                         \
        ACCESS("shmem_iput", CONTEXT, pe, to, sizeof(TYPE), CLASS, n, tst, from, sst, NO_VALUE,                        \
               pshmem_##PRE##T##_iput(CTX to, from, tst, sst, n, pe))                                                  \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##T##_iget(C TYPE *to, const TYPE *from, ptrdiff_t tst, ptrdiff_t sst, size_t n, int pe) {         \
        ENTER;                                                                                                         \
        ACCESS("shmem_iget", CONTEXT, pe, from, sizeof(TYPE), CLASS, n, sst, to, tst, NO_VALUE,                        \
               pshmem_##PRE##T##_iget(CTX to, from, tst, sst, n, pe))                                                  \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##T##_p(C TYPE *to, TYPE value, int pe) {                                                          \
        ENTER;                                                                                                         \
        ACCESS("shmem_p", CONTEXT, pe, to, sizeof(TYPE), CLASS, 1, 1, NULL, 0, value_of(&value, sizeof(TYPE), 1),      \
               pshmem_##PRE##T##_p(CTX to, value, pe))                                                                 \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    TYPE shmem_##PRE##T##_g(C const TYPE *from, int pe) {                                                              \
        ENTER;                                                                                                         \
        TYPE result;                                                                                                   \
        ACCESS("shmem_g", CONTEXT, pe, from, sizeof(TYPE), CLASS, 1, 1, NULL, 0, NO_VALUE,                             \
               result = pshmem_##PRE##T##_g(CTX from, pe))                                                             \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

#define CONTEXT_PARAMETER shmem_ctx_t ctx,
#define CONTEXT_ARGUMENT ctx,
#define NOTHING
#define TYPED(T, TYPE, CLASS)                                                                                          \
    TYPED_(, NOTHING, NOTHING, T, TYPE, CLASS, SHMEM_CTX_DEFAULT)                                                      \
    TYPED_(ctx_, CONTEXT_PARAMETER, CONTEXT_ARGUMENT, T, TYPE, CLASS, ctx)

TYPED(char, char, WHOLE)
TYPED(schar, signed char, WHOLE)
TYPED(uchar, unsigned char, WHOLE)
TYPED(short, short, WHOLE)
TYPED(ushort, unsigned short, WHOLE)
TYPED(int, int, WHOLE)
TYPED(uint, unsigned int, WHOLE)
TYPED(long, long, WHOLE)
TYPED(ulong, unsigned long, WHOLE)
TYPED(longlong, long long, WHOLE)
TYPED(ulonglong, unsigned long long, WHOLE)
TYPED(int8, int8_t, WHOLE)
TYPED(int16, int16_t, WHOLE)
TYPED(int32, int32_t, WHOLE)
TYPED(int64, int64_t, WHOLE)
TYPED(uint8, uint8_t, WHOLE)
TYPED(uint16, uint16_t, WHOLE)
TYPED(uint32, uint32_t, WHOLE)
TYPED(uint64, uint64_t, WHOLE)
TYPED(size, size_t, WHOLE)
TYPED(ptrdiff, ptrdiff_t, WHOLE)
TYPED(float, float, FLOATING)
TYPED(double, double, FLOATING)
TYPED(longdouble, long double, FLOATING)

#define SIZED_(PRE, C, CTX, T, SIZE, CONTEXT)                                                                          \
    void shmem_##PRE##put##T(C void *to, const void *from, size_t n, int pe) {                                         \
        ENTER;                                                                                                         \
        ACCESS("shmem_put", CONTEXT, pe, to, SIZE, WHOLE, n, 1, from, 1, value_of(from, SIZE, n),                      \
               pshmem_##PRE##put##T(CTX to, from, n, pe))                                                              \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##put##T##_nbi(C void *to, const void *from, size_t n, int pe) {                                   \
        ENTER;                                                                                                         \
        ACCESS("shmem_put_nbi", CONTEXT, pe, to, SIZE, WHOLE, n, 1, from, 1, value_of(from, SIZE, n),                  \
               pshmem_##PRE##put##T##_nbi(CTX to, from, n, pe))                                                        \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##get##T(C void *to, const void *from, size_t n, int pe) {                                         \
        ENTER;                                                                                                         \
        ACCESS("shmem_get", CONTEXT, pe, from, SIZE, WHOLE, n, 1, to, 1, NO_VALUE,                                     \
               pshmem_##PRE##get##T(CTX to, from, n, pe))                                                              \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_##PRE##get##T##_nbi(C void *to, const void *from, size_t n, int pe) {                                   \
        ENTER;                                                                                                         \
        ACCESS("shmem_get_nbi", CONTEXT, pe, from, SIZE, WHOLE, n, 1, to, 1, NO_VALUE,                                 \
               pshmem_##PRE##get##T##_nbi(CTX to, from, n, pe))                                                        \
        LEAVE;                                                                                                         \
    }

#define SIZED(T, SIZE)                                                                                                 \
    SIZED_(, NOTHING, NOTHING, T, SIZE, SHMEM_CTX_DEFAULT)                                                             \
    SIZED_(ctx_, CONTEXT_PARAMETER, CONTEXT_ARGUMENT, T, SIZE, ctx)

SIZED(mem, 1)
SIZED(8, 1)
SIZED(16, 2)
SIZED(32, 4)
SIZED(64, 8)
SIZED(128, 16)

/* Atomic operations: those that only change the target may be in flight afterwards. */
#define UPDATES(FUNCTION, PARAMETERS, ARGUMENTS, TYPE, CLASS, CONTEXT, VALUE)                                  \
    void shmem_##FUNCTION PARAMETERS {                                                                                 \
        ENTER;                                                                                                         \
        ACCESS("shmem_atomic update", CONTEXT, pe, to, sizeof(TYPE), CLASS, 1, 1, NULL, 0, VALUE,                      \
               pshmem_##FUNCTION ARGUMENTS)                                                                            \
        LEAVE;                                                                                                         \
    }

#define FETCHES(CALL, FUNCTION, PARAMETERS, ARGUMENTS, TYPE, CLASS, CONTEXT, VALUE)                                    \
    TYPE shmem_##FUNCTION PARAMETERS {                                                                                 \
        ENTER;                                                                                                         \
        TYPE result;                                                                                                   \
        ACCESS(CALL, CONTEXT, pe, to, sizeof(TYPE), CLASS, 1, 1, NULL, 0, VALUE, result = pshmem_##FUNCTION ARGUMENTS) \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

#define MOVES_(PRE, C, CTX, T, TYPE, CLASS, CONTEXT)                                                                   \
    UPDATES(PRE##T##_atomic_set, (C TYPE * to, TYPE value, int pe), (CTX to, value, pe), TYPE, CLASS, CONTEXT, \
            value_of(&value, sizeof(TYPE), 1))                                                                         \
    FETCHES("shmem_atomic fetch", PRE##T##_atomic_fetch, (C const TYPE *to, int pe), (CTX to, pe), TYPE, CLASS,        \
            CONTEXT, NO_VALUE)                                                                                         \
    FETCHES("shmem_atomic fetch and update", PRE##T##_atomic_swap, (C TYPE * to, TYPE value, int pe),                  \
            (CTX to, value, pe), TYPE, CLASS, CONTEXT, value_of(&value, sizeof(TYPE), 1))

#define COUNTS_(PRE, C, CTX, T, TYPE, CLASS, CONTEXT)                                                                  \
    UPDATES(PRE##T##_atomic_add, (C TYPE * to, TYPE value, int pe), (CTX to, value, pe), TYPE, CLASS, CONTEXT, \
            UPDATED)                                                                                                   \
    UPDATES(PRE##T##_atomic_inc, (C TYPE * to, int pe), (CTX to, pe), TYPE, CLASS, CONTEXT, UPDATED)           \
    FETCHES("shmem_atomic fetch and update", PRE##T##_atomic_fetch_add, (C TYPE * to, TYPE value, int pe),             \
            (CTX to, value, pe), TYPE, CLASS, CONTEXT, UPDATED)                                                        \
    FETCHES("shmem_atomic fetch and update", PRE##T##_atomic_fetch_inc, (C TYPE * to, int pe), (CTX to, pe), TYPE,     \
            CLASS, CONTEXT, UPDATED)                                                                                   \
    FETCHES("shmem_atomic fetch and update", PRE##T##_atomic_compare_swap, (C TYPE * to, TYPE cond, TYPE value, int pe), \
            (CTX to, cond, value, pe), TYPE, CLASS, CONTEXT, UPDATED)

#define BITS_(PRE, C, CTX, T, TYPE, CLASS, CONTEXT)                                                                    \
    UPDATES(PRE##T##_atomic_and, (C TYPE * to, TYPE value, int pe), (CTX to, value, pe), TYPE, CLASS, CONTEXT,         \
            UPDATED)                                                                                                   \
    FETCHES("shmem_atomic fetch and update", PRE##T##_atomic_fetch_and, (C TYPE * to, TYPE value, int pe),             \
            (CTX to, value, pe), TYPE, CLASS, CONTEXT, UPDATED)                                                        \
    UPDATES(PRE##T##_atomic_or, (C TYPE * to, TYPE value, int pe), (CTX to, value, pe), TYPE, CLASS, CONTEXT,          \
            UPDATED)                                                                                                   \
    FETCHES("shmem_atomic fetch and update", PRE##T##_atomic_fetch_or, (C TYPE * to, TYPE value, int pe),              \
            (CTX to, value, pe), TYPE, CLASS, CONTEXT, UPDATED)                                                        \
    UPDATES(PRE##T##_atomic_xor, (C TYPE * to, TYPE value, int pe), (CTX to, value, pe), TYPE, CLASS, CONTEXT,         \
            UPDATED)                                                                                                   \
    FETCHES("shmem_atomic fetch and update", PRE##T##_atomic_fetch_xor, (C TYPE * to, TYPE value, int pe),             \
            (CTX to, value, pe), TYPE, CLASS, CONTEXT, UPDATED)

/* The names that 1.4 deprecates. */
#define OLD_MOVES(T, TYPE, CLASS)                                                                                      \
    UPDATES(T##_set, (TYPE * to, TYPE value, int pe), (to, value, pe), TYPE, CLASS, SHMEM_CTX_DEFAULT,                 \
            value_of(&value, sizeof(TYPE), 1))                                                                         \
    FETCHES("shmem_atomic fetch", T##_fetch, (const TYPE *to, int pe), (to, pe), TYPE, CLASS, SHMEM_CTX_DEFAULT,       \
            NO_VALUE)                                                                                                  \
    FETCHES("shmem_atomic fetch and update", T##_swap, (TYPE * to, TYPE value, int pe), (to, value, pe), TYPE, CLASS,  \
            SHMEM_CTX_DEFAULT, value_of(&value, sizeof(TYPE), 1))

#define OLD_COUNTS(T, TYPE)                                                                                            \
    UPDATES(T##_add, (TYPE * to, TYPE value, int pe), (to, value, pe), TYPE, WHOLE, SHMEM_CTX_DEFAULT, UPDATED)        \
    UPDATES(T##_inc, (TYPE * to, int pe), (to, pe), TYPE, WHOLE, SHMEM_CTX_DEFAULT, UPDATED)                           \
    FETCHES("shmem_atomic fetch and update", T##_fadd, (TYPE * to, TYPE value, int pe), (to, value, pe), TYPE, WHOLE,  \
            SHMEM_CTX_DEFAULT, UPDATED)                                                                                \
    FETCHES("shmem_atomic fetch and update", T##_finc, (TYPE * to, int pe), (to, pe), TYPE, WHOLE, SHMEM_CTX_DEFAULT,  \
            UPDATED)                                                                                                   \
    FETCHES("shmem_atomic fetch and update", T##_cswap, (TYPE * to, TYPE cond, TYPE value, int pe),                    \
            (to, cond, value, pe), TYPE, WHOLE, SHMEM_CTX_DEFAULT, UPDATED)

OLD_MOVES(int, int, WHOLE)
OLD_MOVES(long, long, WHOLE)
OLD_MOVES(longlong, long long, WHOLE)
OLD_MOVES(float, float, FLOATING)
OLD_MOVES(double, double, FLOATING)
OLD_COUNTS(int, int)
OLD_COUNTS(long, long)
OLD_COUNTS(longlong, long long)

#define BOTH(WHAT, T, TYPE, CLASS)                                                                                     \
    WHAT(, NOTHING, NOTHING, T, TYPE, CLASS, SHMEM_CTX_DEFAULT)                                                        \
    WHAT(ctx_, CONTEXT_PARAMETER, CONTEXT_ARGUMENT, T, TYPE, CLASS, ctx)

BOTH(MOVES_, int, int, WHOLE)
BOTH(MOVES_, uint, unsigned int, WHOLE)
BOTH(MOVES_, long, long, WHOLE)
BOTH(MOVES_, ulong, unsigned long, WHOLE)
BOTH(MOVES_, longlong, long long, WHOLE)
BOTH(MOVES_, ulonglong, unsigned long long, WHOLE)
BOTH(MOVES_, float, float, FLOATING)
BOTH(MOVES_, double, double, FLOATING)
BOTH(COUNTS_, int, int, WHOLE)
BOTH(COUNTS_, uint, unsigned int, WHOLE)
BOTH(COUNTS_, long, long, WHOLE)
BOTH(COUNTS_, ulong, unsigned long, WHOLE)
BOTH(COUNTS_, longlong, long long, WHOLE)
BOTH(COUNTS_, ulonglong, unsigned long long, WHOLE)

BOTH(BITS_, int, int, WHOLE)
BOTH(BITS_, uint, unsigned int, WHOLE)
BOTH(BITS_, long, long, WHOLE)
BOTH(BITS_, ulong, unsigned long, WHOLE)
BOTH(BITS_, longlong, long long, WHOLE)
BOTH(BITS_, ulonglong, unsigned long long, WHOLE)
BOTH(BITS_, int32, int32_t, WHOLE)
BOTH(BITS_, int64, int64_t, WHOLE)
BOTH(BITS_, uint32, uint32_t, WHOLE)
BOTH(BITS_, uint64, uint64_t, WHOLE)

/* Waiting for a flag, until it differs from a value (deprecated) or compares to one. */
#define OLD_WAIT(NAME, TYPE)                                                                                           \
    void shmem_##NAME(volatile TYPE *flag, TYPE value) {                                                               \
        ENTER;                                                                                                         \
        pshmem_##NAME(flag, value);                                                                                    \
        if (outer) {                                                                                                   \
            TYPE now = *flag;                                                                                          \
            sv_waited_for(address(flag), value_of(&now, sizeof now, 1).bits);                                          \
        }                                                                                                              \
        LEAVE;                                                                                                         \
    }

OLD_WAIT(short_wait, short)
OLD_WAIT(int_wait, int)
OLD_WAIT(long_wait, long)
OLD_WAIT(longlong_wait, long long)
OLD_WAIT(wait, long)

#define WAITS(T, TYPE)                                                                                                 \
    void shmem_##T##_wait_until(volatile TYPE *flag, int compare, TYPE value) {                                        \
        ENTER;                                                                                                         \
        pshmem_##T##_wait_until(flag, compare, value);                                                                 \
        if (outer) {                                                                                                   \
            TYPE now = *flag;                                                                                          \
            sv_waited_for(address(flag), value_of(&now, sizeof now, 1).bits);                                          \
        }                                                                                                              \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    int shmem_##T##_test(volatile TYPE *flag, int compare, TYPE value) {                                               \
        ENTER;                                                                                                         \
        int is = pshmem_##T##_test(flag, compare, value);                                                              \
        if (outer && is) {                                                                                             \
            TYPE now = *flag;                                                                                          \
            sv_waited_for(address(flag), value_of(&now, sizeof now, 1).bits);                                          \
        }                                                                                                              \
        LEAVE;                                                                                                         \
        return is;                                                                                                     \
    }

WAITS(short, short)
WAITS(ushort, unsigned short)
WAITS(int, int)
WAITS(uint, unsigned int)
WAITS(long, long)
WAITS(ulong, unsigned long)
WAITS(longlong, long long)
WAITS(ulonglong, unsigned long long)
WAITS(int32, int32_t)
WAITS(int64, int64_t)
WAITS(uint32, uint32_t)
WAITS(uint64, uint64_t)
WAITS(size, size_t)
WAITS(ptrdiff, ptrdiff_t)

/* Collective operations of an active set. What they read and write, they have read and written when they return. */
static void used(int outer, const void *from, size_t from_bytes, const void *to, size_t to_bytes) {
    struct sv_piece in = {address(from), from_bytes, BASIC(WHOLE, 1)}, out = {address(to), to_bytes, BASIC(WHOLE, 1)};
    if (outer && from_bytes)
        sv_buffer("shmem collective (sends)", 0, &in, 1);
    if (outer && to_bytes)
        sv_buffer("shmem collective (receives)", 0, &out, 1);
}

#define REDUCES(T, TYPE, OP)                                                                                           \
    void shmem_##T##_##OP##_to_all(TYPE *to, const TYPE *from, int n, int start, int log_stride, int size, TYPE *work, \
                                   long *sync) {                                                                       \
        ENTER;                                                                                                         \
        used(outer, from, (size_t)n * sizeof(TYPE), NULL, 0);                                                          \
        struct set set = enter(outer, start, log_stride, size, 1, 1);                                                  \
        pshmem_##T##_##OP##_to_all(to, from, n, start, log_stride, size, work, sync);                                  \
        leave(outer, set);                                                                                             \
        used(outer, NULL, 0, to, (size_t)n * sizeof(TYPE));                                                            \
        LEAVE;                                                                                                         \
    }

#define REDUCES_NUMBERS(T, TYPE)                                                                                       \
    REDUCES(T, TYPE, sum)                                                                                              \
    REDUCES(T, TYPE, prod)                                                                                             \
    REDUCES(T, TYPE, max)                                                                                              \
    REDUCES(T, TYPE, min)
#define REDUCES_BITS(T, TYPE)                                                                                          \
    REDUCES_NUMBERS(T, TYPE)                                                                                           \
    REDUCES(T, TYPE, and)                                                                                              \
    REDUCES(T, TYPE, or)                                                                                               \
    REDUCES(T, TYPE, xor)

REDUCES_BITS(short, short)
REDUCES_BITS(int, int)
REDUCES_BITS(long, long)
REDUCES_BITS(longlong, long long)
REDUCES_NUMBERS(float, float)
REDUCES_NUMBERS(double, double)
REDUCES_NUMBERS(longdouble, long double)

#define GATHERS(BITS)                                                                                                  \
    void shmem_broadcast##BITS(void *to, const void *from, size_t n, int root, int start, int log_stride, int size,    \
                               long *sync) {                                                                           \
        ENTER;                                                                                                         \
        size_t bytes = n * (BITS / 8);                                                                                 \
        int roots = outer && sv_world_rank == start + (root << log_stride);                                            \
        used(outer && roots, from, bytes, NULL, 0);                                                                    \
        struct set set = enter(outer, start, log_stride, size, roots, !roots);                                         \
        pshmem_broadcast##BITS(to, from, n, root, start, log_stride, size, sync);                                      \
        leave(outer, set);                                                                                             \
        used(outer && !roots, NULL, 0, to, bytes);                                                                     \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_fcollect##BITS(void *to, const void *from, size_t n, int start, int log_stride, int size, long *sync) { \
        ENTER;                                                                                                         \
        size_t bytes = n * (BITS / 8);                                                                                 \
        used(outer, from, bytes, NULL, 0);                                                                             \
        struct set set = enter(outer, start, log_stride, size, 1, 1);                                                  \
        pshmem_fcollect##BITS(to, from, n, start, log_stride, size, sync);                                             \
        leave(outer, set);                                                                                             \
        used(outer, NULL, 0, to, bytes * (size_t)size);                                                                \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_collect##BITS(void *to, const void *from, size_t n, int start, int log_stride, int size, long *sync) {  \
        ENTER;                                                                                                         \
        used(outer, from, n *(BITS / 8), NULL, 0);                                                                     \
        struct set set = enter(outer, start, log_stride, size, 1, 1);                                                  \
        pshmem_collect##BITS(to, from, n, start, log_stride, size, sync);                                              \
        leave(outer, set);                                                                                             \
        LEAVE;                                                                                                         \
    }                                                                                                                  \
    void shmem_alltoall##BITS(void *to, const void *from, size_t n, int start, int log_stride, int size, long *sync) { \
        ENTER;                                                                                                         \
        size_t bytes = n * (BITS / 8) * (size_t)size;                                                                  \
        used(outer, from, bytes, NULL, 0);                                                                             \
        struct set set = enter(outer, start, log_stride, size, 1, 1);                                                  \
        pshmem_alltoall##BITS(to, from, n, start, log_stride, size, sync);                                             \
        leave(outer, set);                                                                                             \
        used(outer, NULL, 0, to, bytes);                                                                               \
        LEAVE;                                                                                                         \
    }

GATHERS(32)
GATHERS(64)

/* What the layer in C tells the part in Rust (rank/src/ffi.rs), and what both share. */
#ifndef SELVEDGE_LAYER_H
#define SELVEDGE_LAYER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of memory; `basic` is the number of their basic type, times 65536, plus the size of an element. */
struct sv_piece {
    uint64_t start, len, basic;
};

/* Memory of another rank that this one can load and store. */
struct sv_part {
    uint64_t start, len, owner, offset;
};

typedef void sv_look(void *into, uint64_t *words);
typedef void sv_sink(void *into, const uint8_t *bytes, size_t len);

/* How bytes get from rank to rank. */
struct sv_table {
    void (*sparse)(size_t count, const uint32_t *to, const uint8_t *const *data, const size_t *len, sv_sink *sink, void *into);
    uint32_t (*any)(uint32_t bits);
    void (*all)(const uint8_t *data, size_t len, sv_sink *sink, void *into);
    /* Looks at the board of a rank, and changes it, while nobody else does. */
    void (*visit)(uint32_t owner, sv_look *look, void *into);
    /* Lets time pass, in microseconds, in which messages get on. */
    void (*pass)(uint32_t micros);
    /* Whether this thread may call MPI now. */
    int (*talks)(void);
};

/* As in rules.rs. */
enum sv_completion { SV_FENCE, SV_COMPLETE, SV_UNLOCK, SV_FLUSH, SV_FLUSH_LOCAL, SV_REQUEST, SV_FREE };
enum sv_epoch { SV_POST, SV_START, SV_END, SV_WAIT };

void sv_attach(void);
void sv_start(int rank, int size, const struct sv_table *table);
void sv_finish(void);
void sv_enter(uintptr_t pc);
void sv_leave(void);
void sv_exchange(void);
void sv_window(uint64_t window, uint64_t base, uint64_t len, const char *name, const struct sv_part *parts, size_t count);
void sv_window_name(uint64_t window, const char *name);
void sv_window_map(uint64_t window, uint64_t start, uint64_t len);
void sv_window_free(uint64_t window);
void sv_rma(const char *call, uint64_t window, uint32_t target, uint64_t request, int no_op,
            const struct sv_piece *const lists[3], const size_t counts[3]);
void sv_buffer(const char *call, uint64_t request, const struct sv_piece *pieces, size_t count);
void sv_complete(uint8_t what, uint64_t window, int target);
void sv_lock(uint64_t window, int target, int exclusive);
void sv_unlock(uint64_t window, int target);
void sv_send(uint64_t comm, uint32_t to, int tag);
void sv_post_receive(uint64_t request, uint64_t comm, int from, int tag);
void sv_receive(uint64_t comm, uint32_t from, int tag);
void sv_request_done(uint64_t request, uint32_t from, int tag);
void sv_request_freed(uint64_t request);
void sv_unfollowed(void);
uint64_t sv_request_comm(uint64_t request);
uint32_t sv_collective_enter(uint64_t comm, int gives);
void sv_collective_leave(uint64_t comm, uint32_t k);
void sv_collective_request(uint64_t request, uint64_t comm, uint32_t k);
uint32_t sv_barrier_enter(void);
void sv_barrier_leave(uint32_t barrier);
uint32_t sv_split_enter(void);
void sv_split_request(uint64_t request, uint32_t barrier);
void sv_epoch(int what, uint64_t window, const uint32_t *ranks, size_t count);
void sv_misuse(const char *what);

/* OpenSHMEM: see rank/src/ffi/symmetric.rs. A value that a rank may wait for: none (0), a known one (1), or what an
   update leaves (2). */
struct sv_value {
    uint64_t is, bits;
};

/* A call: `count` elements of `size` bytes at another rank, named by this rank's own address of them and `stride`
   elements apart, and as many at the origin, if `local` is not 0. */
struct sv_shmem {
    const char *call;
    uint64_t context, pe, basic, remote, size, count;
    int64_t stride;
    uint64_t local;
    int64_t local_stride;
    struct sv_value value;
};

void sv_symmetric(uint64_t number, uint64_t base, uint64_t len);
void sv_asymmetric(uint64_t base);
int sv_shmem_before(const struct sv_shmem *call);
void sv_shmem(const struct sv_shmem *call);
void sv_quiet(uint64_t context);
void sv_fence(uint64_t context);
void sv_shmem_lock(uint64_t lock, int held);
void sv_waited_for(uint64_t flag, uint64_t value);

/* Phase II: see rank/src/ffi/tested.rs. */
int sv_confirms(void);
size_t sv_board_words(void);
void sv_publish(void);
int sv_before(const char *call, uint64_t window, uint32_t target, int no_op, const struct sv_piece *const lists[3],
              const size_t counts[3]);
void sv_made(void);
void sv_before_buffer(const char *call, const struct sv_piece *pieces, size_t count);
void sv_hold(uint8_t what, uint64_t window, int target);
void sv_hold_request(uint64_t request);

#endif

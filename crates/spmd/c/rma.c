/* One-sided communication: what it accesses and what completes it. */
#include "common.h"
#include <stdlib.h>

static int unit_of(const struct window *w, int target) {
    return w->units ? w->units[target] : w->unit;
}

/* Memory at the origin; a call without a buffer has no pieces. */
static void local(struct pieces *into, const void *at, int count, MPI_Datatype type) {
    if (at != MPI_IN_PLACE)
        sv_flatten(into, (int64_t)(uintptr_t)at, count, type);
}

/* The memory of a call. */
struct memory {
    struct pieces remote, origin, result;
};

/* Tells of a call that was made, or asks whether it may be made (`before`), which takes a turn. `lists` are the pieces
   at the target, at the origin, and of the result. */
static int tell(int before, const char *name, struct window *w, int target, MPI_Aint disp, int count, MPI_Datatype type,
                struct memory m, uint64_t request, int no_op) {
    int turn = 0;
    sv_flatten(&m.remote, (int64_t)disp * unit_of(w, target), count, type);
    const struct sv_piece *const lists[3] = {sv_list(&m.remote), sv_list(&m.origin), sv_list(&m.result)};
    const size_t counts[3] = {m.remote.count, m.origin.count, m.result.count};
    uint32_t rank = sv_world_of(w->comm, target);
    if (before)
        turn = sv_before(name, w->number, rank, no_op, lists, counts);
    else
        sv_rma(name, w->number, rank, request, no_op, lists, counts);
    free(m.remote.list);
    free(m.origin.list);
    free(m.result.list);
    return turn;
}

/* Looks whether MPI allows the call, which may end the program if it does not. */
static void check(const char *name, struct window *w, int target, MPI_Aint disp, int count, MPI_Datatype type) {
    MPI_Aint bound, extent, least, most;
    PMPI_Type_get_extent(type, &bound, &extent);
    PMPI_Type_get_true_extent(type, &least, &most);
    int64_t start = (int64_t)disp * unit_of(w, target) + least, end = start;
    if (count > 0)
        end += (int64_t)(count - 1) * extent + most;
    int64_t limit = w->lens ? w->lens[target] : w->len;
    sv_check(name, w->number, sv_world_of(w->comm, target), start, end, extent < 0 ? -1 : limit);
}

/* It is this call's turn: brings it to its target as far as that is possible before its epoch ends. */
static void hurry(int turn, int target, MPI_Win win) {
    if (turn == 2)
        PMPI_Win_flush(target, win);
    else
        sv_pass(20000);
    sv_made();
}

/* `BUFFERS` fills `mem`. */
#define RMA(NAME, CALL, BUFFERS, COUNT, TYPE, REQUEST, NO_OP)                                                          \
    ENTER;                                                                                                             \
    struct window *w = outer && target != MPI_PROC_NULL ? sv_window_of(win) : NULL;                                    \
    int turn = 0;                                                                                                      \
    if (w)                                                                                                             \
        check(NAME, w, target, disp, COUNT, TYPE);                                                                     \
    if (w && sv_testing) {                                                                                             \
        struct memory mem = {0};                                                                                       \
        BUFFERS;                                                                                                       \
        turn = tell(1, NAME, w, target, disp, COUNT, TYPE, mem, 0, NO_OP);                                             \
    }                                                                                                                  \
    int status = CALL;                                                                                                 \
    if (w && status == MPI_SUCCESS) {                                                                                  \
        struct memory mem = {0};                                                                                       \
        BUFFERS;                                                                                                       \
        tell(0, NAME, w, target, disp, COUNT, TYPE, mem, REQUEST, NO_OP);                                              \
    }                                                                                                                  \
    if (turn)                                                                                                          \
        hurry(turn, target, win);                                                                                      \
    LEAVE;                                                                                                             \
    return status;

int MPI_Put(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
            MPI_Win win) {
    RMA("MPI_Put", PMPI_Put(from, n, type, target, disp, count, its, win), local(&mem.origin, from, n, type), count, its, 0,
        0)
}

int MPI_Rput(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
             MPI_Win win, MPI_Request *request) {
    RMA("MPI_Rput", PMPI_Rput(from, n, type, target, disp, count, its, win, request), local(&mem.origin, from, n, type),
        count, its, sv_id(*request), 0)
}

int MPI_Get(void *into, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Win win) {
    RMA("MPI_Get", PMPI_Get(into, n, type, target, disp, count, its, win), local(&mem.origin, into, n, type), count, its, 0,
        0)
}

int MPI_Rget(void *into, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Win win,
             MPI_Request *request) {
    RMA("MPI_Rget", PMPI_Rget(into, n, type, target, disp, count, its, win, request), local(&mem.origin, into, n, type),
        count, its, sv_id(*request), 0)
}

int MPI_Accumulate(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
                   MPI_Op op, MPI_Win win) {
    RMA("MPI_Accumulate", PMPI_Accumulate(from, n, type, target, disp, count, its, op, win),
        local(&mem.origin, from, n, type), count, its, 0, op == MPI_NO_OP)
}

int MPI_Raccumulate(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
                    MPI_Op op, MPI_Win win, MPI_Request *request) {
    RMA("MPI_Raccumulate", PMPI_Raccumulate(from, n, type, target, disp, count, its, op, win, request),
        local(&mem.origin, from, n, type), count, its, sv_id(*request), op == MPI_NO_OP)
}

int MPI_Get_accumulate(const void *from, int n, MPI_Datatype type, void *into, int m, MPI_Datatype result_type,
                       int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Op op, MPI_Win win) {
    RMA("MPI_Get_accumulate",
        PMPI_Get_accumulate(from, n, type, into, m, result_type, target, disp, count, its, op, win),
        if (op != MPI_NO_OP) local(&mem.origin, from, n, type);
        local(&mem.result, into, m, result_type), count, its, 0, op == MPI_NO_OP)
}

int MPI_Rget_accumulate(const void *from, int n, MPI_Datatype type, void *into, int m, MPI_Datatype result_type,
                        int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Op op, MPI_Win win,
                        MPI_Request *request) {
    RMA("MPI_Rget_accumulate",
        PMPI_Rget_accumulate(from, n, type, into, m, result_type, target, disp, count, its, op, win, request),
        if (op != MPI_NO_OP) local(&mem.origin, from, n, type);
        local(&mem.result, into, m, result_type), count, its, sv_id(*request), op == MPI_NO_OP)
}

int MPI_Fetch_and_op(const void *from, void *into, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op op,
                     MPI_Win win) {
    RMA("MPI_Fetch_and_op", PMPI_Fetch_and_op(from, into, type, target, disp, op, win),
        if (op != MPI_NO_OP) local(&mem.origin, from, 1, type);
        local(&mem.result, into, 1, type), 1, type, 0, op == MPI_NO_OP)
}

int MPI_Compare_and_swap(const void *from, const void *compare, void *into, MPI_Datatype type, int target,
                         MPI_Aint disp, MPI_Win win) {
    RMA("MPI_Compare_and_swap", PMPI_Compare_and_swap(from, compare, into, type, target, disp, win),
        local(&mem.origin, from, 1, type);
        local(&mem.origin, compare, 1, type); local(&mem.result, into, 1, type), 1, type, 0, 0)
}

int MPI_Win_fence(int assertion, MPI_Win win) {
    ENTER;
    /* With MPI_MODE_NOPRECEDE there is nothing to complete, and the call need not wait for others. */
    struct window *any = outer ? sv_window_of(win) : NULL, *w = assertion & MPI_MODE_NOPRECEDE ? NULL : any;
    uint32_t k = 0;
    if (w) {
        sv_hold(SV_FENCE, w->number, -1);
        sv_complete(SV_FENCE, w->number, -1);
        k = w->comm->all ? sv_barrier_enter() : sv_collective_enter(w->number, 1);
    }
    int result = PMPI_Win_fence(assertion, win);
    if (any)
        sv_fenced(any->number, !(assertion & MPI_MODE_NOSUCCEED));
    if (w && w->comm->all) {
        sv_barrier_leave(k);
        sv_exchange();
    } else if (w) {
        sv_collective_leave(w->number, k);
    }
    LEAVE;
    return result;
}

/* `HOLD` comes before what the call completes may be complete. */
#define COMPLETES(NAME, PARAMETERS, ARGUMENTS, HOLD, TELL)                                                             \
    int MPI_##NAME PARAMETERS {                                                                                        \
        ENTER;                                                                                                         \
        struct window *w = outer ? sv_window_of(win) : NULL;                                                           \
        if (w && sv_testing) {                                                                                         \
            HOLD;                                                                                                      \
        }                                                                                                              \
        int result = PMPI_##NAME ARGUMENTS;                                                                            \
        if (w && result == MPI_SUCCESS) {                                                                              \
            TELL;                                                                                                      \
        }                                                                                                              \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

static int at(const struct window *w, int target) {
    return (int)sv_world_of(w->comm, target);
}

#define FLUSHES(NAME, PARAMETERS, ARGUMENTS, WHAT, TARGET)                                                             \
    COMPLETES(NAME, PARAMETERS, ARGUMENTS, sv_hold(WHAT, w->number, TARGET), sv_complete(WHAT, w->number, TARGET))

FLUSHES(Win_flush, (int target, MPI_Win win), (target, win), SV_FLUSH, at(w, target))
FLUSHES(Win_flush_all, (MPI_Win win), (win), SV_FLUSH, -1)
FLUSHES(Win_flush_local, (int target, MPI_Win win), (target, win), SV_FLUSH_LOCAL, at(w, target))
FLUSHES(Win_flush_local_all, (MPI_Win win), (win), SV_FLUSH_LOCAL, -1)
COMPLETES(Win_lock, (int type, int target, int assertion, MPI_Win win), (type, target, assertion, win), ,
          sv_lock(w->number, at(w, target), type == MPI_LOCK_EXCLUSIVE))
COMPLETES(Win_lock_all, (int assertion, MPI_Win win), (assertion, win), , sv_lock(w->number, -1, 0))
COMPLETES(Win_unlock, (int target, MPI_Win win), (target, win), sv_hold(SV_UNLOCK, w->number, at(w, target)),
          sv_unlock(w->number, at(w, target)))
COMPLETES(Win_unlock_all, (MPI_Win win), (win), sv_hold(SV_UNLOCK, w->number, -1), sv_unlock(w->number, -1))

/* Remembers the ranks of a group for the call that ends the epoch. */
static void begin(int what, struct window *w, MPI_Group group, uint32_t **ranks, size_t *count) {
    free(*ranks);
    *ranks = sv_ranks_of(group, count);
    sv_epoch(what, w->number, *ranks, *count);
}

int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win) {
    ENTER;
    struct window *w = outer ? sv_window_of(win) : NULL;
    if (w)
        begin(SV_POST, w, group, &w->posted, &w->posted_count);
    int result = PMPI_Win_post(group, assertion, win);
    if (w && sv_testing)
        sv_tell_posted(w);
    LEAVE;
    return result;
}

/* MPI may let an origin begin its epoch before the targets have posted theirs. What is in flight in it would look as
   if it could meet what a target does before it posts, so the origin waits when pairs are tested. */
COMPLETES(Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win), ,
          begin(SV_START, w, group, &w->started, &w->started_count);
          if (sv_testing) sv_await_posted(w))
COMPLETES(Win_complete, (MPI_Win win), (win), sv_hold(SV_COMPLETE, w->number, -1),
          sv_epoch(SV_END, w->number, w->started, w->started_count))
COMPLETES(Win_wait, (MPI_Win win), (win), , sv_epoch(SV_WAIT, w->number, w->posted, w->posted_count))
COMPLETES(Win_test, (MPI_Win win, int *flag), (win, flag), ,
          if (*flag) sv_epoch(SV_WAIT, w->number, w->posted, w->posted_count))

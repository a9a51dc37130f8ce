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

/* Tells of a call. `lists` are the pieces at the target, at the origin, and of the result. */
static void tell(const char *name, struct window *w, int target, MPI_Aint disp, int count, MPI_Datatype type,
                 struct pieces *origin, struct pieces *result, uint64_t request, int no_op) {
    struct pieces remote = {0};
    sv_flatten(&remote, (int64_t)disp * unit_of(w, target), count, type);
    const struct sv_piece *const lists[3] = {remote.list, origin->list, result->list};
    const size_t counts[3] = {remote.count, origin->count, result->count};
    sv_rma(name, w->number, sv_world_of(w->comm, target), request, no_op, lists, counts);
    free(remote.list);
    free(origin->list);
    free(result->list);
}

/* `BUFFERS` fills `origin` and `result`. */
#define RMA(NAME, CALL, BUFFERS, COUNT, TYPE, REQUEST, NO_OP)                                                          \
    ENTER;                                                                                                             \
    struct window *w = outer && target != MPI_PROC_NULL ? sv_window_of(win) : NULL;                                    \
    int status = CALL;                                                                                                 \
    if (w && status == MPI_SUCCESS) {                                                                                  \
        struct pieces origin = {0}, result = {0};                                                                      \
        BUFFERS;                                                                                                       \
        tell(NAME, w, target, disp, COUNT, TYPE, &origin, &result, REQUEST, NO_OP);                                    \
    }                                                                                                                  \
    LEAVE;                                                                                                             \
    return status;

int MPI_Put(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
            MPI_Win win) {
    RMA("MPI_Put", PMPI_Put(from, n, type, target, disp, count, its, win), local(&origin, from, n, type), count, its, 0,
        0)
}

int MPI_Rput(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
             MPI_Win win, MPI_Request *request) {
    RMA("MPI_Rput", PMPI_Rput(from, n, type, target, disp, count, its, win, request), local(&origin, from, n, type),
        count, its, sv_id(*request), 0)
}

int MPI_Get(void *into, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Win win) {
    RMA("MPI_Get", PMPI_Get(into, n, type, target, disp, count, its, win), local(&origin, into, n, type), count, its, 0,
        0)
}

int MPI_Rget(void *into, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Win win,
             MPI_Request *request) {
    RMA("MPI_Rget", PMPI_Rget(into, n, type, target, disp, count, its, win, request), local(&origin, into, n, type),
        count, its, sv_id(*request), 0)
}

int MPI_Accumulate(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
                   MPI_Op op, MPI_Win win) {
    RMA("MPI_Accumulate", PMPI_Accumulate(from, n, type, target, disp, count, its, op, win),
        local(&origin, from, n, type), count, its, 0, op == MPI_NO_OP)
}

int MPI_Raccumulate(const void *from, int n, MPI_Datatype type, int target, MPI_Aint disp, int count, MPI_Datatype its,
                    MPI_Op op, MPI_Win win, MPI_Request *request) {
    RMA("MPI_Raccumulate", PMPI_Raccumulate(from, n, type, target, disp, count, its, op, win, request),
        local(&origin, from, n, type), count, its, sv_id(*request), op == MPI_NO_OP)
}

int MPI_Get_accumulate(const void *from, int n, MPI_Datatype type, void *into, int m, MPI_Datatype result_type,
                       int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Op op, MPI_Win win) {
    RMA("MPI_Get_accumulate",
        PMPI_Get_accumulate(from, n, type, into, m, result_type, target, disp, count, its, op, win),
        if (op != MPI_NO_OP) local(&origin, from, n, type);
        local(&result, into, m, result_type), count, its, 0, op == MPI_NO_OP)
}

int MPI_Rget_accumulate(const void *from, int n, MPI_Datatype type, void *into, int m, MPI_Datatype result_type,
                        int target, MPI_Aint disp, int count, MPI_Datatype its, MPI_Op op, MPI_Win win,
                        MPI_Request *request) {
    RMA("MPI_Rget_accumulate",
        PMPI_Rget_accumulate(from, n, type, into, m, result_type, target, disp, count, its, op, win, request),
        if (op != MPI_NO_OP) local(&origin, from, n, type);
        local(&result, into, m, result_type), count, its, sv_id(*request), op == MPI_NO_OP)
}

int MPI_Fetch_and_op(const void *from, void *into, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op op,
                     MPI_Win win) {
    RMA("MPI_Fetch_and_op", PMPI_Fetch_and_op(from, into, type, target, disp, op, win),
        if (op != MPI_NO_OP) local(&origin, from, 1, type);
        local(&result, into, 1, type), 1, type, 0, op == MPI_NO_OP)
}

int MPI_Compare_and_swap(const void *from, const void *compare, void *into, MPI_Datatype type, int target,
                         MPI_Aint disp, MPI_Win win) {
    RMA("MPI_Compare_and_swap", PMPI_Compare_and_swap(from, compare, into, type, target, disp, win),
        local(&origin, from, 1, type);
        local(&origin, compare, 1, type); local(&result, into, 1, type), 1, type, 0, 0)
}

int MPI_Win_fence(int assertion, MPI_Win win) {
    ENTER;
    /* With MPI_MODE_NOPRECEDE there is nothing to complete, and the call need not wait for others. */
    struct window *w = outer && !(assertion & MPI_MODE_NOPRECEDE) ? sv_window_of(win) : NULL;
    uint32_t k = 0;
    if (w) {
        sv_complete(SV_FENCE, w->number, -1);
        k = w->comm->all ? sv_barrier_enter() : sv_collective_enter(w->number, 1);
    }
    int result = PMPI_Win_fence(assertion, win);
    if (w && w->comm->all) {
        sv_barrier_leave(k);
        sv_exchange();
    } else if (w) {
        sv_collective_leave(w->number, k);
    }
    LEAVE;
    return result;
}

#define COMPLETES(NAME, PARAMETERS, ARGUMENTS, TELL)                                                                   \
    int MPI_##NAME PARAMETERS {                                                                                        \
        ENTER;                                                                                                         \
        struct window *w = outer ? sv_window_of(win) : NULL;                                                           \
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

COMPLETES(Win_flush, (int target, MPI_Win win), (target, win), sv_complete(SV_FLUSH, w->number, at(w, target)))
COMPLETES(Win_flush_all, (MPI_Win win), (win), sv_complete(SV_FLUSH, w->number, -1))
COMPLETES(Win_flush_local, (int target, MPI_Win win), (target, win),
          sv_complete(SV_FLUSH_LOCAL, w->number, at(w, target)))
COMPLETES(Win_flush_local_all, (MPI_Win win), (win), sv_complete(SV_FLUSH_LOCAL, w->number, -1))
COMPLETES(Win_lock, (int type, int target, int assertion, MPI_Win win), (type, target, assertion, win),
          sv_lock(w->number, at(w, target), type == MPI_LOCK_EXCLUSIVE))
COMPLETES(Win_lock_all, (int assertion, MPI_Win win), (assertion, win), sv_lock(w->number, -1, 0))
COMPLETES(Win_unlock, (int target, MPI_Win win), (target, win), sv_unlock(w->number, at(w, target)))
COMPLETES(Win_unlock_all, (MPI_Win win), (win), sv_unlock(w->number, -1))

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
    LEAVE;
    return result;
}

COMPLETES(Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win),
          begin(SV_START, w, group, &w->started, &w->started_count))
COMPLETES(Win_complete, (MPI_Win win), (win), sv_epoch(SV_END, w->number, w->started, w->started_count))
COMPLETES(Win_wait, (MPI_Win win), (win), sv_epoch(SV_WAIT, w->number, w->posted, w->posted_count))
COMPLETES(Win_test, (MPI_Win win, int *flag), (win, flag),
          if (*flag) sv_epoch(SV_WAIT, w->number, w->posted, w->posted_count))

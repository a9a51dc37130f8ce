/* Messages and collective operations: what they order, and the buffers that they use. */
#include "common.h"
#include <stdlib.h>

/* The buffer of a call, in use until the request is complete. */
static void buffer(const char *call, uint64_t request, const void *at, int count, MPI_Datatype type) {
    struct pieces pieces = {0};
    if (at == MPI_IN_PLACE)
        return;
    sv_flatten(&pieces, (int64_t)(uintptr_t)at, count, type);
    sv_buffer(call, request, sv_list(&pieces), pieces.count);
    free(pieces.list);
}

/* A blocking call is about to use a buffer. */
static void before(const char *call, const void *at, int count, MPI_Datatype type) {
    struct pieces pieces = {0};
    if (!sv_testing || at == MPI_IN_PLACE)
        return;
    sv_flatten(&pieces, (int64_t)(uintptr_t)at, count, type);
    sv_before_buffer(call, sv_list(&pieces), pieces.count);
    free(pieces.list);
}

static void sent(MPI_Comm comm, int to, int tag) {
    struct comm *c = to == MPI_PROC_NULL ? NULL : sv_comm_of(comm);
    if (c)
        sv_send(c->number, sv_world_of(c, to), tag);
    else if (to != MPI_PROC_NULL)
        sv_unfollowed();
}

static void received(MPI_Comm comm, const MPI_Status *status) {
    struct comm *c = status->MPI_SOURCE == MPI_PROC_NULL ? NULL : sv_comm_of(comm);
    if (c && status->MPI_SOURCE >= 0)
        sv_receive(c->number, sv_world_of(c, status->MPI_SOURCE), status->MPI_TAG);
    else if (status->MPI_SOURCE != MPI_PROC_NULL)
        sv_unfollowed();
}

#define SENDS(NAME)                                                                                                    \
    int MPI_##NAME(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {                       \
        ENTER;                                                                                                         \
        if (outer) {                                                                                                   \
            before("MPI_Send", from, n, type);                                                                         \
            buffer("MPI_Send", 0, from, n, type);                                                                      \
            sent(comm, to, tag);                                                                                       \
        }                                                                                                              \
        int result = PMPI_##NAME(from, n, type, to, tag, comm);                                                        \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

SENDS(Send)
SENDS(Ssend)
SENDS(Bsend)
SENDS(Rsend)

#define STARTS_TO_SEND(NAME, CALL)                                                                                     \
    int MPI_##NAME(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,                         \
                   MPI_Request *request) {                                                                             \
        ENTER;                                                                                                         \
        if (outer)                                                                                                     \
            sent(comm, to, tag);                                                                                       \
        int result = PMPI_##NAME(from, n, type, to, tag, comm, request);                                               \
        if (outer)                                                                                                     \
            buffer(CALL, sv_id(*request), from, n, type);                                                              \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

STARTS_TO_SEND(Isend, "MPI_Isend")
STARTS_TO_SEND(Issend, "MPI_Issend")
STARTS_TO_SEND(Ibsend, "MPI_Isend")
STARTS_TO_SEND(Irsend, "MPI_Isend")

int MPI_Recv(void *into, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    ENTER;
    MPI_Status own;
    MPI_Status *seen = status == MPI_STATUS_IGNORE ? &own : status;
    int result;
    if (outer && sv_testing && from != MPI_PROC_NULL) {
        /* The message is there before the buffer counts as about to be written: what its sender did before that is
           over. */
        MPI_Message message;
        PMPI_Mprobe(from, tag, comm, &message, seen);
        before("MPI_Recv", into, n, type);
        result = PMPI_Mrecv(into, n, type, &message, seen);
    } else {
        result = PMPI_Recv(into, n, type, from, tag, comm, seen);
    }
    if (outer) {
        received(comm, seen);
        buffer("MPI_Recv", 0, into, n, type);
    }
    LEAVE;
    return result;
}

int MPI_Irecv(void *into, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    ENTER;
    int result = PMPI_Irecv(into, n, type, from, tag, comm, request);
    struct comm *c = outer && from != MPI_PROC_NULL ? sv_comm_of(comm) : NULL;
    if (c) {
        int source = from == MPI_ANY_SOURCE ? -1 : (int)sv_world_of(c, from);
        sv_post_receive(sv_id(*request), c->number, source, tag == MPI_ANY_TAG ? -1 : tag);
        buffer("MPI_Irecv", sv_id(*request), into, n, type);
    }
    LEAVE;
    return result;
}

int MPI_Sendrecv(const void *from, int n, MPI_Datatype type, int to, int tag, void *into, int m, MPI_Datatype its,
                 int source, int its_tag, MPI_Comm comm, MPI_Status *status) {
    ENTER;
    MPI_Status own;
    MPI_Status *seen = status == MPI_STATUS_IGNORE ? &own : status;
    if (outer) {
        before("MPI_Sendrecv (sends)", from, n, type);
        buffer("MPI_Sendrecv (sends)", 0, from, n, type);
        sent(comm, to, tag);
    }
    int result = PMPI_Sendrecv(from, n, type, to, tag, into, m, its, source, its_tag, comm, seen);
    if (outer) {
        received(comm, seen);
        buffer("MPI_Sendrecv (receives)", 0, into, m, its);
    }
    LEAVE;
    return result;
}

int MPI_Sendrecv_replace(void *at, int n, MPI_Datatype type, int to, int tag, int source, int its_tag, MPI_Comm comm,
                         MPI_Status *status) {
    ENTER;
    MPI_Status own;
    MPI_Status *seen = status == MPI_STATUS_IGNORE ? &own : status;
    if (outer)
        sent(comm, to, tag);
    int result = PMPI_Sendrecv_replace(at, n, type, to, tag, source, its_tag, comm, seen);
    if (outer) {
        received(comm, seen);
        buffer("MPI_Sendrecv (receives)", 0, at, n, type);
    }
    LEAVE;
    return result;
}

/* A request that was `id` has been completed. */
static void done(uint64_t id, const MPI_Status *status) {
    sv_hold_request(id);
    uint64_t number = sv_request_comm(id);
    struct comm *c = number ? sv_comm_numbered(number - 1) : NULL;
    uint32_t from = c && status->MPI_SOURCE >= 0 ? sv_world_of(c, status->MPI_SOURCE) : 0;
    sv_request_done(id, from, status->MPI_TAG);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    ENTER;
    MPI_Status own;
    MPI_Status *seen = status == MPI_STATUS_IGNORE ? &own : status;
    uint64_t id = sv_id(*request);
    if (outer)
        sv_hold_request(id);
    int result = PMPI_Wait(request, seen);
    if (outer)
        done(id, seen);
    LEAVE;
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    ENTER;
    MPI_Status own;
    MPI_Status *seen = status == MPI_STATUS_IGNORE ? &own : status;
    uint64_t id = sv_id(*request);
    int result = PMPI_Test(request, flag, seen);
    if (outer && *flag)
        done(id, seen);
    LEAVE;
    return result;
}

static uint64_t *ids_of(int n, const MPI_Request *requests) {
    uint64_t *ids = malloc(sizeof *ids * ((size_t)n + 1));
    for (int i = 0; i < n; i++)
        ids[i] = sv_id(requests[i]);
    return ids;
}

/* Statuses of the caller, or of our own if the caller wants none. */
#define MANY(N, HOLD, CALL, WHEN, EACH)                                                                                    \
    ENTER;                                                                                                             \
    uint64_t *ids = ids_of(N, requests);                                                                               \
    MPI_Status *own = malloc(sizeof *own * ((size_t)(N) + 1));                                                         \
    MPI_Status *seen = statuses == MPI_STATUSES_IGNORE ? own : statuses;                                               \
    if (outer && sv_testing) {                                                                                         \
        HOLD;                                                                                                          \
    }                                                                                                                  \
    int result = CALL;                                                                                                 \
    if (outer && (WHEN)) {                                                                                             \
        EACH;                                                                                                          \
    }                                                                                                                  \
    free(own);                                                                                                         \
    free(ids);                                                                                                         \
    LEAVE;                                                                                                             \
    return result;

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]) {
    MANY(n, for (int i = 0; i < n; i++) sv_hold_request(ids[i]), PMPI_Waitall(n, requests, seen), 1, for (int i = 0; i < n; i++) done(ids[i], &seen[i]))
}

int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    MANY(n, , PMPI_Testall(n, requests, flag, seen), *flag, for (int i = 0; i < n; i++) done(ids[i], &seen[i]))
}

int MPI_Waitsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]) {
    MANY(n, , PMPI_Waitsome(n, requests, count, indices, seen), *count != MPI_UNDEFINED,
         for (int i = 0; i < *count; i++) done(ids[indices[i]], &seen[i]))
}

int MPI_Testsome(int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]) {
    MANY(n, , PMPI_Testsome(n, requests, count, indices, seen), *count != MPI_UNDEFINED,
         for (int i = 0; i < *count; i++) done(ids[indices[i]], &seen[i]))
}

int MPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *statuses) {
    MANY(n, , PMPI_Waitany(n, requests, index, seen), *index != MPI_UNDEFINED, done(ids[*index], &seen[0]))
}

int MPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *statuses) {
    MANY(n, , PMPI_Testany(n, requests, index, flag, seen), *flag && *index != MPI_UNDEFINED, done(ids[*index], &seen[0]))
}

int MPI_Request_free(MPI_Request *request) {
    ENTER;
    uint64_t id = sv_id(*request);
    int result = PMPI_Request_free(request);
    if (outer)
        sv_request_freed(id);
    LEAVE;
    return result;
}

/* Calls that order ranks, and whose order is not followed yet. */
#define UNFOLLOWED(NAME, PARAMETERS, ARGUMENTS)                                                                        \
    int MPI_##NAME PARAMETERS {                                                                                        \
        ENTER;                                                                                                         \
        if (outer)                                                                                                     \
            sv_unfollowed();                                                                                           \
        int result = PMPI_##NAME ARGUMENTS;                                                                            \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

UNFOLLOWED(Start, (MPI_Request * request), (request))
UNFOLLOWED(Startall, (int n, MPI_Request requests[]), (n, requests))
UNFOLLOWED(Mrecv, (void *into, int n, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
           (into, n, type, message, status))
UNFOLLOWED(Imrecv, (void *into, int n, MPI_Datatype type, MPI_Message *message, MPI_Request *request),
           (into, n, type, message, request))
UNFOLLOWED(Neighbor_allgather,
           (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm),
           (a, n, t, b, m, u, comm))
UNFOLLOWED(Neighbor_alltoall,
           (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm),
           (a, n, t, b, m, u, comm))
UNFOLLOWED(Scan, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), (a, b, n, t, op, comm))
UNFOLLOWED(Exscan, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), (a, b, n, t, op, comm))
UNFOLLOWED(Ireduce,
           (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm, MPI_Request *request),
           (a, b, n, t, op, root, comm, request))
UNFOLLOWED(Iallgather,
           (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm, MPI_Request *request),
           (a, n, t, b, m, u, comm, request))
UNFOLLOWED(Ialltoall,
           (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm, MPI_Request *request),
           (a, n, t, b, m, u, comm, request))

/* A collective operation. A rank whose part others need gives; a rank that needs the parts of others takes. */
struct operation {
    struct comm *comm;
    uint32_t k;
    int all, takes;
};

static struct operation enter(int outer, MPI_Comm comm, int gives, int takes) {
    struct operation o = {outer ? sv_comm_of(comm) : NULL, 0, 0, takes};
    if (!o.comm) {
        if (outer)
            sv_unfollowed();
        return o;
    }
    o.all = gives && takes && o.comm->all;
    o.k = o.all ? sv_barrier_enter() : sv_collective_enter(o.comm->number, gives);
    return o;
}

static void leave(struct operation o) {
    if (!o.comm)
        return;
    if (o.all) {
        sv_barrier_leave(o.k);
        sv_exchange();
    } else if (o.takes) {
        sv_collective_leave(o.comm->number, o.k);
    }
}

static int is_root(int outer, MPI_Comm comm, int root) {
    int rank = -1;
    if (outer)
        PMPI_Comm_rank(comm, &rank);
    return rank == root;
}

#define COLLECTIVE(NAME, PARAMETERS, ARGUMENTS, GIVES, TAKES)                                                          \
    int MPI_##NAME PARAMETERS {                                                                                        \
        ENTER;                                                                                                         \
        struct operation operation = enter(outer, comm, GIVES, TAKES);                                                 \
        int result = PMPI_##NAME ARGUMENTS;                                                                            \
        leave(operation);                                                                                              \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

/* All need the parts of all. */
COLLECTIVE(Barrier, (MPI_Comm comm), (comm), 1, 1)
COLLECTIVE(Allreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), (a, b, n, t, op, comm),
           1, 1)
COLLECTIVE(Allgather, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm),
           (a, n, t, b, m, u, comm), 1, 1)
COLLECTIVE(Allgatherv,
           (const void *a, int n, MPI_Datatype t, void *b, const int m[], const int d[], MPI_Datatype u, MPI_Comm comm),
           (a, n, t, b, m, d, u, comm), 1, 1)
COLLECTIVE(Alltoall, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm),
           (a, n, t, b, m, u, comm), 1, 1)
COLLECTIVE(Alltoallv,
           (const void *a, const int n[], const int d[], MPI_Datatype t, void *b, const int m[], const int e[],
            MPI_Datatype u, MPI_Comm comm),
           (a, n, d, t, b, m, e, u, comm), 1, 1)
COLLECTIVE(Reduce_scatter, (const void *a, void *b, const int n[], MPI_Datatype t, MPI_Op op, MPI_Comm comm),
           (a, b, n, t, op, comm), 1, 1)
COLLECTIVE(Reduce_scatter_block, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
           (a, b, n, t, op, comm), 1, 1)
/* All need the part of the root. */
COLLECTIVE(Bcast, (void *a, int n, MPI_Datatype t, int root, MPI_Comm comm), (a, n, t, root, comm),
           is_root(outer, comm, root), !is_root(outer, comm, root))
COLLECTIVE(Scatter,
           (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root, MPI_Comm comm),
           (a, n, t, b, m, u, root, comm), is_root(outer, comm, root), !is_root(outer, comm, root))
COLLECTIVE(Scatterv,
           (const void *a, const int n[], const int d[], MPI_Datatype t, void *b, int m, MPI_Datatype u, int root,
            MPI_Comm comm),
           (a, n, d, t, b, m, u, root, comm), is_root(outer, comm, root), !is_root(outer, comm, root))
/* The root needs the parts of all. */
COLLECTIVE(Reduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm),
           (a, b, n, t, op, root, comm), !is_root(outer, comm, root), is_root(outer, comm, root))
COLLECTIVE(Gather, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root, MPI_Comm comm),
           (a, n, t, b, m, u, root, comm), !is_root(outer, comm, root), is_root(outer, comm, root))
COLLECTIVE(Gatherv,
           (const void *a, int n, MPI_Datatype t, void *b, const int m[], const int d[], MPI_Datatype u, int root,
            MPI_Comm comm),
           (a, n, t, b, m, d, u, root, comm), !is_root(outer, comm, root), is_root(outer, comm, root))

/* Starts a collective operation; its request takes what others give. */
static void starts(struct operation o, MPI_Request request) {
    if (o.comm && o.takes)
        sv_collective_request(sv_id(request), o.comm->number, o.k);
}

/* As `enter`, for operations that do not wait: these end no phase, except MPI_Ibarrier of all ranks. */
static struct operation start(int outer, MPI_Comm comm, int gives, int takes) {
    struct operation o = {outer ? sv_comm_of(comm) : NULL, 0, 0, takes};
    if (o.comm)
        o.k = sv_collective_enter(o.comm->number, gives);
    else if (outer)
        sv_unfollowed();
    return o;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) {
    ENTER;
    /* Barriers of other communicators may begin in another order on another rank. */
    int split = outer && comm == MPI_COMM_WORLD;
    uint32_t barrier = split ? sv_split_enter() : 0;
    struct operation operation = start(outer && !split, comm, 1, 1);
    int result = PMPI_Ibarrier(comm, request);
    if (split)
        sv_split_request(sv_id(*request), barrier);
    starts(operation, *request);
    LEAVE;
    return result;
}

int MPI_Iallreduce(const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
    ENTER;
    struct operation operation = start(outer, comm, 1, 1);
    int result = PMPI_Iallreduce(a, b, n, t, op, comm, request);
    if (outer) {
        buffer("MPI_Iallreduce (sends)", sv_id(*request), a, n, t);
        buffer("MPI_Iallreduce (receives)", sv_id(*request), b, n, t);
    }
    starts(operation, *request);
    LEAVE;
    return result;
}

int MPI_Ibcast(void *a, int n, MPI_Datatype t, int root, MPI_Comm comm, MPI_Request *request) {
    ENTER;
    int roots = is_root(outer, comm, root);
    struct operation operation = start(outer, comm, roots, !roots);
    int result = PMPI_Ibcast(a, n, t, root, comm, request);
    if (outer)
        buffer(roots ? "MPI_Ibcast (sends)" : "MPI_Ibcast (receives)", sv_id(*request), a, n, t);
    starts(operation, *request);
    LEAVE;
    return result;
}

/* What the parts of the layer share: communicators and windows as the analysis knows them. */
#ifndef SELVEDGE_COMMON_H
#define SELVEDGE_COMMON_H

#include "layer.h"
#include <mpi.h>

/* A communicator, or the communicator of a window. */
struct comm {
    uint64_t number;
    int all;  /* It has every rank of the job. */
    int same; /* Its ranks have the numbers that they have in MPI_COMM_WORLD. */
    int foreign; /* It has ranks of another job. */
    MPI_Group group;
    struct comm *next;
};

struct window {
    uint64_t number;
    struct comm *comm;
    int unit;   /* The displacement unit of all ranks, */
    int *units; /* or of each, if they differ. */
    int64_t len; /* The bytes of each rank's part; -1 if that is not known, */
    int64_t *lens; /* or of each, if they differ. */
    uint32_t *posted, *started;
    size_t posted_count, started_count;
};

/* The layer is up between MPI_Init and MPI_Finalize. */
extern int sv_up;
extern __thread int sv_inside;
extern int sv_world_size, sv_world_rank;
/* Pairs are tested in this execution. */
extern int sv_testing;

/* Every wrapper begins with ENTER and ends with LEAVE. `outer` is false in calls that MPI makes itself. */
#define ENTER                                                                                                          \
    int outer = sv_inside++ == 0 && sv_up;                                                                             \
    if (outer)                                                                                                         \
        sv_enter((uintptr_t)__builtin_return_address(0));
#define LEAVE                                                                                                          \
    if (outer)                                                                                                         \
        sv_leave();                                                                                                    \
    sv_inside--;

struct comm *sv_comm_of(MPI_Comm comm);
struct comm *sv_comm_numbered(uint64_t number);
void sv_comm_made(MPI_Comm comm);
uint32_t sv_world_of(const struct comm *comm, int rank);
uint32_t *sv_ranks_of(MPI_Group group, size_t *count);
struct window *sv_window_of(MPI_Win win);
void sv_board_up(MPI_Comm comm);
void sv_board_down(void);
void sv_visit(uint32_t owner, sv_look *look, void *into);
void sv_pass(uint32_t micros);
int sv_talks(void);
void sv_tell_posted(const struct window *w);
void sv_await_posted(const struct window *w);
void sv_set_up(void);
void sv_tear_down(void);

/* `list` is NULL as long as all are in `few`, as with nearly all calls. */
struct pieces {
    struct sv_piece *list;
    size_t count, room;
    struct sv_piece few[2];
};

static inline const struct sv_piece *sv_list(const struct pieces *pieces) {
    return pieces->list ? pieces->list : pieces->few;
}

void sv_flatten(struct pieces *into, int64_t at, int count, MPI_Datatype type);

static inline uint64_t sv_id(MPI_Request request) {
    return (uint64_t)(uintptr_t)request;
}

#endif

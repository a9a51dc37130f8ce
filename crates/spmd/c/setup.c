/* Start and end of the layer, numbers of communicators and windows, and the transport. */
#include "common.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

int sv_up, sv_world_size, sv_world_rank;
__thread int sv_inside;

static MPI_Comm transport = MPI_COMM_NULL;
static MPI_Group world_group;
static int comm_key = MPI_KEYVAL_INVALID, win_key = MPI_KEYVAL_INVALID;
static struct comm *comms;
static uint32_t made;

__attribute__((constructor)) static void attach(void) {
    sv_attach();
}

/* Sends bytes to some ranks. No rank knows who sends to it: that all messages have arrived shows in a barrier, which
   a rank enters when its own have (Hoefler, Siebert and Lumsdaine, PPoPP 2010). */
static void sparse(size_t count, const uint32_t *to, const uint8_t *const *data, const size_t *len, sv_sink *sink,
                   void *into) {
    MPI_Request *sends = malloc((count + 1) * sizeof *sends), barrier = MPI_REQUEST_NULL;
    for (size_t i = 0; i < count; i++)
        PMPI_Issend(data[i], (int)len[i], MPI_BYTE, (int)to[i], 1, transport, &sends[i]);
    int entered = 0, done = 0;
    while (!done) {
        int here;
        MPI_Status status;
        PMPI_Iprobe(MPI_ANY_SOURCE, 1, transport, &here, &status);
        if (here) {
            int size;
            PMPI_Get_count(&status, MPI_BYTE, &size);
            uint8_t *bytes = malloc((size_t)size + 1);
            PMPI_Recv(bytes, size, MPI_BYTE, status.MPI_SOURCE, 1, transport, MPI_STATUS_IGNORE);
            sink(into, bytes, (size_t)size);
            free(bytes);
            continue;
        }
        if (entered) {
            PMPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
        } else {
            PMPI_Testall((int)count, sends, &entered, MPI_STATUSES_IGNORE);
            if (entered)
                PMPI_Ibarrier(transport, &barrier);
        }
        if (!done)
            sched_yield();
    }
    free(sends);
}

static uint32_t any(uint32_t bits) {
    uint32_t all = 0;
    PMPI_Allreduce(&bits, &all, 1, MPI_UINT32_T, MPI_BOR, transport);
    return all;
}

static void all(const uint8_t *data, size_t len, sv_sink *sink, void *into) {
    int mine = (int)len, *lens = malloc(sizeof(int) * (size_t)sv_world_size), total = 0;
    int *at = malloc(sizeof(int) * (size_t)sv_world_size);
    PMPI_Allgather(&mine, 1, MPI_INT, lens, 1, MPI_INT, transport);
    for (int i = 0; i < sv_world_size; i++) {
        at[i] = total;
        total += lens[i];
    }
    uint8_t *bytes = malloc((size_t)total + 1);
    PMPI_Allgatherv(data, mine, MPI_BYTE, bytes, lens, at, MPI_BYTE, transport);
    for (int i = 0; i < sv_world_size; i++)
        sink(into, bytes + at[i], (size_t)lens[i]);
    free(bytes);
    free(at);
    free(lens);
}

static const struct sv_table table = {sparse, any, all, sv_visit, sv_pass, sv_talks};

static struct comm *describe(MPI_Comm comm, uint64_t number) {
    struct comm *new = calloc(1, sizeof *new);
    int size = 0, relation = MPI_UNEQUAL;
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_group(comm, &new->group);
    PMPI_Group_compare(new->group, world_group, &relation);
    new->number = number;
    new->all = relation != MPI_UNEQUAL;
    new->same = relation == MPI_IDENT;
    new->next = comms;
    comms = new;
    return new;
}

/* A number that all ranks of a communicator agree on, and that no other communicator or window has. */
static uint64_t agree(MPI_Comm comm) {
    uint64_t number = ((uint64_t)sv_world_rank + 1) << 32 | ++made;
    PMPI_Bcast(&number, 1, MPI_UINT64_T, 0, comm);
    return number;
}

void sv_set_up(void) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &sv_world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &sv_world_size);
    PMPI_Comm_dup(MPI_COMM_WORLD, &transport);
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, NULL);
    PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_key, NULL);
    PMPI_Comm_set_attr(MPI_COMM_WORLD, comm_key, describe(MPI_COMM_WORLD, 1));
    PMPI_Comm_set_attr(MPI_COMM_SELF, comm_key, describe(MPI_COMM_SELF, ((uint64_t)sv_world_rank + 1) << 32));
    sv_start(sv_world_rank, sv_world_size, &table);
    if (sv_confirms())
        sv_board_up(transport);
    sv_up = 1;
}

void sv_tear_down(void) {
    sv_up = 0;
    sv_finish();
    sv_board_down();
    PMPI_Comm_free(&transport);
}

struct comm *sv_comm_of(MPI_Comm comm) {
    void *found = NULL;
    int there = 0;
    PMPI_Comm_get_attr(comm, comm_key, &found, &there);
    return there ? found : NULL;
}

struct comm *sv_comm_numbered(uint64_t number) {
    for (struct comm *c = comms; c; c = c->next)
        if (c->number == number)
            return c;
    return NULL;
}

/* A communicator was made. Ranks that are not in it get none. */
void sv_comm_made(MPI_Comm comm) {
    int inter = 0;
    if (comm == MPI_COMM_NULL)
        return;
    PMPI_Comm_test_inter(comm, &inter);
    if (!inter)
        PMPI_Comm_set_attr(comm, comm_key, describe(comm, agree(comm)));
}

uint32_t sv_world_of(const struct comm *comm, int rank) {
    int world = rank;
    if (!comm->same)
        PMPI_Group_translate_ranks(comm->group, 1, &rank, world_group, &world);
    return (uint32_t)world;
}

/* The ranks of a group, as MPI_COMM_WORLD counts them; the caller frees them. */
uint32_t *sv_ranks_of(MPI_Group group, size_t *count) {
    int size = 0;
    PMPI_Group_size(group, &size);
    int *here = malloc(sizeof(int) * ((size_t)size + 1)), *there = malloc(sizeof(int) * ((size_t)size + 1));
    uint32_t *ranks = malloc(sizeof *ranks * ((size_t)size + 1));
    for (int i = 0; i < size; i++)
        here[i] = i;
    PMPI_Group_translate_ranks(group, size, here, world_group, there);
    for (int i = 0; i < size; i++)
        ranks[i] = (uint32_t)there[i];
    free(here);
    free(there);
    *count = (size_t)size;
    return ranks;
}

struct window *sv_window_of(MPI_Win win) {
    void *found = NULL;
    int there = 0;
    PMPI_Win_get_attr(win, win_key, &found, &there);
    return there ? found : NULL;
}

static uint64_t address(const void *at) {
    return (uint64_t)(uintptr_t)at;
}

/* A window was made with this memory of this rank. `shared`: other ranks' memory can be loaded and stored. */
static void window_made(MPI_Win win, MPI_Comm comm, const void *base, MPI_Aint len, int unit, int shared) {
    struct window *new = calloc(1, sizeof *new);
    int size, rank, least[2] = {unit, -unit}, most[2];
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    uint64_t number = agree(comm);
    new->number = number;
    new->comm = describe(comm, number);
    PMPI_Allreduce(least, most, 2, MPI_INT, MPI_MAX, comm);
    new->unit = unit;
    if (most[0] != -most[1]) {
        new->units = malloc(sizeof(int) * (size_t)size);
        PMPI_Allgather(&unit, 1, MPI_INT, new->units, 1, MPI_INT, comm);
    }
    PMPI_Win_set_attr(win, win_key, new);
    struct sv_part *parts = NULL;
    size_t count = 0;
    if (shared) {
        parts = malloc(sizeof *parts * (size_t)size);
        for (int i = 0; i < size; i++) {
            MPI_Aint part;
            int its_unit;
            void *at;
            PMPI_Win_shared_query(win, i, &part, &its_unit, &at);
            if (i != rank && part > 0)
                parts[count++] = (struct sv_part){address(at), (uint64_t)part, sv_world_of(new->comm, i), 0};
        }
    }
    sv_window(number, address(base), (uint64_t)len, "", parts, count);
    sv_publish();
    free(parts);
}

/* To make a window synchronizes: no rank can access another one's part before that has made it. */
#define MAKE(PMPI_CALL, BASE, LEN, UNIT, SHARED)                                                                       \
    ENTER;                                                                                                             \
    struct comm *c = outer ? sv_comm_of(comm) : NULL;                                                                  \
    uint32_t k = !c ? 0 : c->all ? sv_barrier_enter() : sv_collective_enter(c->number, 1);                             \
    int result = PMPI_CALL;                                                                                            \
    if (outer && result == MPI_SUCCESS)                                                                                \
        window_made(*win, comm, BASE, LEN, UNIT, SHARED);                                                              \
    if (c && c->all) {                                                                                                 \
        sv_barrier_leave(k);                                                                                           \
        sv_exchange();                                                                                                 \
    } else if (c) {                                                                                                    \
        sv_collective_leave(c->number, k);                                                                             \
    }                                                                                                                  \
    LEAVE;                                                                                                             \
    return result;

int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win) {
    MAKE(PMPI_Win_create(base, size, unit, info, comm, win), base, size, unit, 0)
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
    MAKE(PMPI_Win_allocate(size, unit, info, comm, base, win), *(void **)base, size, unit, 0)
}

int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
    MAKE(PMPI_Win_allocate_shared(size, unit, info, comm, base, win), *(void **)base, size, unit, 1)
}

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win) {
    MAKE(PMPI_Win_create_dynamic(info, comm, win), NULL, 0, 1, 0)
}

int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size) {
    ENTER;
    struct window *w = outer ? sv_window_of(win) : NULL;
    int result = PMPI_Win_attach(win, base, size);
    if (w)
        sv_window_map(w->number, address(base), (uint64_t)size);
    LEAVE;
    return result;
}

int MPI_Win_free(MPI_Win *win) {
    ENTER;
    struct window *w = outer ? sv_window_of(*win) : NULL;
    uint32_t k = 0;
    if (w) {
        sv_hold(SV_FREE, w->number, -1);
        sv_complete(SV_FREE, w->number, -1);
        k = w->comm->all ? sv_barrier_enter() : sv_collective_enter(w->number, 1);
    }
    int result = PMPI_Win_free(win);
    if (w && w->comm->all) {
        sv_barrier_leave(k);
        sv_exchange();
    } else if (w) {
        sv_collective_leave(w->number, k);
    }
    if (w)
        sv_window_free(w->number);
    LEAVE;
    return result;
}

int MPI_Win_set_name(MPI_Win win, const char *name) {
    ENTER;
    struct window *w = outer ? sv_window_of(win) : NULL;
    int result = PMPI_Win_set_name(win, name);
    if (w)
        sv_window_name(w->number, name);
    LEAVE;
    return result;
}

int MPI_Init(int *argc, char ***argv) {
    sv_inside++;
    sv_enter((uintptr_t)__builtin_return_address(0));
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS && !sv_up)
        sv_set_up();
    sv_leave();
    sv_inside--;
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    sv_inside++;
    sv_enter((uintptr_t)__builtin_return_address(0));
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS && !sv_up)
        sv_set_up();
    sv_leave();
    sv_inside--;
    return result;
}

int MPI_Finalize(void) {
    ENTER;
    if (outer)
        sv_tear_down();
    int result = PMPI_Finalize();
    LEAVE;
    return result;
}

#define MAKES(NAME, PARAMETERS, ARGUMENTS)                                                                             \
    int MPI_##NAME PARAMETERS {                                                                                        \
        ENTER;                                                                                                         \
        int result = PMPI_##NAME ARGUMENTS;                                                                            \
        if (outer && result == MPI_SUCCESS)                                                                            \
            sv_comm_made(*made_comm);                                                                                  \
        LEAVE;                                                                                                         \
        return result;                                                                                                 \
    }

MAKES(Comm_dup, (MPI_Comm comm, MPI_Comm *made_comm), (comm, made_comm))
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made_comm), (comm, info, made_comm))
MAKES(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made_comm), (comm, color, key, made_comm))
MAKES(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made_comm),
      (comm, type, key, info, made_comm))
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made_comm), (comm, group, made_comm))
MAKES(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made_comm), (comm, group, tag, made_comm))
MAKES(Cart_create, (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made_comm),
      (comm, n, dims, periods, reorder, made_comm))
MAKES(Cart_sub, (MPI_Comm comm, const int dims[], MPI_Comm *made_comm), (comm, dims, made_comm))
MAKES(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made_comm), (comm, high, made_comm))

/* Phase II: boards in a window of ours, waiting, and origins that wait for their targets. */
#define _GNU_SOURCE
#include "common.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int sv_testing;

static MPI_Win boards = MPI_WIN_NULL;
static MPI_Comm comm = MPI_COMM_NULL;
static uint64_t *copy;
static int level;
static pthread_t main_thread;
static pthread_mutex_t visiting = PTHREAD_MUTEX_INITIALIZER;

void sv_board_up(MPI_Comm transport) {
    uint64_t *own;
    size_t bytes = sv_board_words() * sizeof *own;
    comm = transport;
    copy = malloc(bytes);
    main_thread = pthread_self();
    PMPI_Query_thread(&level);
    PMPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, comm, &own, &boards);
    memset(own, 0, bytes);
    PMPI_Barrier(comm);
    sv_testing = 1;
}

void sv_board_down(void) {
    if (!sv_testing)
        return;
    sv_testing = 0;
    PMPI_Win_free(&boards);
    free(copy);
}

/* Without MPI_THREAD_MULTIPLE only a thread that is inside MPI already, or the main thread of a program whose other
   threads never call MPI, may call it. */
int sv_talks(void) {
    return sv_testing && (level == MPI_THREAD_MULTIPLE || sv_inside > 0 ||
                          (level < MPI_THREAD_SERIALIZED && pthread_equal(pthread_self(), main_thread)));
}

void sv_visit(uint32_t owner, sv_look *look, void *into) {
    int words = (int)sv_board_words();
    sv_inside++;
    /* A rank can hold the lock of a board only once. */
    pthread_mutex_lock(&visiting);
    PMPI_Win_lock(MPI_LOCK_EXCLUSIVE, (int)owner, 0, boards);
    PMPI_Get(copy, words, MPI_UINT64_T, (int)owner, 0, words, MPI_UINT64_T, boards);
    PMPI_Win_flush((int)owner, boards);
    look(into, copy);
    PMPI_Put(copy, words, MPI_UINT64_T, (int)owner, 0, words, MPI_UINT64_T, boards);
    PMPI_Win_unlock((int)owner, boards);
    pthread_mutex_unlock(&visiting);
    sv_inside--;
}

void sv_pass(uint32_t micros) {
    /* Short sleeps: the rank that is waited for may need this one's help to get on. */
    enum { SLICE = 200 };
    sv_inside++;
    for (uint32_t passed = 0; passed < micros; passed += SLICE) {
        int here;
        PMPI_Iprobe(MPI_ANY_SOURCE, 3, comm, &here, MPI_STATUS_IGNORE);
        struct timespec slice = {0, 1000L * SLICE};
        nanosleep(&slice, NULL);
    }
    sv_inside--;
}

/* Messages about one window do not match those about another one. */
static int tag_of(const struct window *w) {
    return 16 + (int)((w->number ^ w->number >> 32) & 0x3fff);
}

void sv_tell_posted(const struct window *w) {
    for (size_t i = 0; i < w->posted_count; i++) {
        MPI_Request request;
        PMPI_Isend(NULL, 0, MPI_BYTE, (int)w->posted[i], tag_of(w), comm, &request);
        PMPI_Request_free(&request);
    }
}

void sv_await_posted(const struct window *w) {
    for (size_t i = 0; i < w->started_count; i++)
        PMPI_Recv(NULL, 0, MPI_BYTE, (int)w->started[i], tag_of(w), comm, MPI_STATUS_IGNORE);
}

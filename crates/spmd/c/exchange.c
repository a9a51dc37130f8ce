/* Carries messages between the processes of a campaign, by the user's MPI.
 *
 * Selvedge starts this program in each rank and talks to it by pipes: a line `RANK MESSAGE` on standard input goes to
 * that rank, and a line `RANK MESSAGE` on standard output came from that rank. The first line of output is the number of
 * this rank and how many there are. The line `q` ends the job in order, and `x` ends it without MPI_Finalize, which
 * would wait for ranks that are gone. Both are for rank 0, and are passed on to the others.
 *
 * It is a process of its own, so that a job that MPI breaks off does not take a half-written store with it, and the
 * program under test never shares a process with MPI. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE = 1, QUIT = 2, LEAVE = 3 };

/* A message that MPI may still read. */
struct sending {
    struct sending *next;
    MPI_Request request;
    char *text;
};

static struct sending *sendings;
static int rank, size;

static void send_to(int to, const char *text, size_t length, int tag) {
    struct sending *sending = malloc(sizeof *sending);
    if (!sending || !(sending->text = malloc(length + 1))) exit(1);
    memcpy(sending->text, text, length);
    if (MPI_Isend(sending->text, (int)length, MPI_CHAR, to, tag, MPI_COMM_WORLD, &sending->request)) {
        free(sending->text);
        free(sending);
        return;
    }
    sending->next = sendings;
    sendings = sending;
}

/* Frees what has been sent. Messages to ranks that are gone stay. */
static void sweep(void) {
    struct sending **at = &sendings;
    while (*at) {
        struct sending *sending = *at;
        int done = 0;
        if (MPI_Test(&sending->request, &done, MPI_STATUS_IGNORE) || done) {
            *at = sending->next;
            free(sending->text);
            free(sending);
        } else {
            at = &sending->next;
        }
    }
}

static void give_up(int signal) {
    (void)signal;
    _exit(0);
}

static void leave(int in_order) {
    if (in_order) {
        /* A rank that died in the meantime is waited for in vain. */
        signal(SIGALRM, give_up);
        alarm(10);
        while (sendings) sweep();
        MPI_Finalize();
    } else {
        /* What is under way has a moment to arrive. */
        for (int i = 0; sendings && i < 200; i++) {
            sweep();
            usleep(1000);
        }
    }
    _exit(0);
}

static void put(const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(1, text, length);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(1);
        text += written;
        length -= (size_t)written;
    }
}

/* A line of standard input. */
static void obey(char *line, size_t length) {
    if (length == 1 && (line[0] == 'q' || line[0] == 'x')) {
        int tag = line[0] == 'q' ? QUIT : LEAVE;
        for (int to = 0; rank == 0 && to < size; to++)
            if (to != rank) send_to(to, "", 0, tag);
        if (rank == 0) leave(tag == QUIT);
        return;
    }
    char *text;
    long to = strtol(line, &text, 10);
    if (*text == ' ' && to >= 0 && to < size) send_to((int)to, text + 1, length - (size_t)(text + 1 - line), MESSAGE);
}

/* Whether a message came. */
static int listen(void) {
    MPI_Status status;
    int there = 0, length = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) || !there) return 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    char *text = malloc((size_t)length + 32);
    if (!text) exit(1);
    int head = sprintf(text, "%d ", status.MPI_SOURCE);
    if (MPI_Recv(text + head, length, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) {
        free(text);
        return 0;
    }
    if (status.MPI_TAG != MESSAGE) leave(status.MPI_TAG == QUIT);
    text[head + length] = '\n';
    put(text, (size_t)(head + length + 1));
    free(text);
    return 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char hello[64];
    put(hello, (size_t)sprintf(hello, "%d %d\n", rank, size));
    fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    size_t room = 1 << 16, have = 0;
    char *lines = malloc(room);
    if (!lines) exit(1);
    int pause = 0;
    for (;;) {
        struct pollfd in = {0, POLLIN, 0};
        if (poll(&in, 1, pause) > 0) {
            ssize_t got = read(0, lines + have, room - have - 1);
            /* Our rank is gone. */
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) _exit(1);
            if (got > 0) have += (size_t)got;
            char *begin = lines, *end;
            while ((end = memchr(begin, '\n', have - (size_t)(begin - lines)))) {
                *end = 0;
                obey(begin, (size_t)(end - begin));
                begin = end + 1;
            }
            have -= (size_t)(begin - lines);
            memmove(lines, begin, have);
            if (have + 1 >= room && !(lines = realloc(lines, room *= 2))) exit(1);
            pause = 0;
        }
        int came = 0;
        while (listen()) came = 1;
        sweep();
        pause = came ? 0 : pause < 5 ? pause + 1 : 5;
    }
}

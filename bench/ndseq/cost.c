/* Linked to a kernel: says at the end how much processor time it has taken, on a line of the file that COST names. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

__attribute__((destructor)) static void tell(void) {
    const char *name = getenv("COST");
    struct rusage used;
    if (name == NULL || getrusage(RUSAGE_SELF, &used) != 0) return;
    int file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0) return;
    dprintf(file, "%.6f\n", seconds(used.ru_utime) + seconds(used.ru_stime));
    close(file);
}

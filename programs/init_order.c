// Shape: order violation at start. A subsystem says that it is up before its settings are there.
// Idea: initialisation orders as in Mozilla's (Lu, Park, Seo and Zhou, ASPLOS 2008).
// Shows: the assertion, if a client comes between flag and settings.
// Fixed: the flag is raised last.
#include "shape.h"
#include <stdatomic.h>

static atomic_int up, port, limit;

static void *boot(void *arg) {
#ifdef FIXED
    atomic_store(&port, 80);
    atomic_store(&limit, 10);
    atomic_store(&up, 1);
#else
    atomic_store(&port, 80);
    atomic_store(&up, 1);
    atomic_store(&limit, 10);
#endif
    return arg;
}

static void *client(void *arg) {
    if (atomic_load(&up)) assert(atomic_load(&port) == 80 && atomic_load(&limit) == 10);
    return arg;
}

int main(void) {
    pthread_t server = start(boot, NULL);
    pthread_t clients[3];
    for (int i = 0; i < 3; i++) clients[i] = start(client, NULL);
    join(server);
    for (int i = 0; i < 3; i++) join(clients[i]);
    return 0;
}

#include "corpus.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
int request, answer;
static int at_server, at_client;
static void *server(void *arg) {
#ifdef FIXED
    char c;
    if (recv(at_server, &c, 1, 0) != 1) abort();
#endif
    request = 2; // race(request)
    answer = 1; // race(answer)
#ifdef FIXED
    if (send(at_server, "x", 1, 0) != 1) abort();
#endif
    return arg;
}
static void *client(void *arg) {
    request = 1; // race(request)
    if (send(at_client, "x", 1, 0) != 1) abort();
#ifdef FIXED
    char c;
    if (recv(at_client, &c, 1, 0) != 1) abort();
#endif
    answer = 2; // race(answer)
    return arg;
}
int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, len) != 0) abort();
    if (listen(listener, 1) != 0) abort();
    getsockname(listener, (struct sockaddr *)&address, &len);
    at_client = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(at_client, (struct sockaddr *)&address, len) != 0) abort();
    at_server = accept(listener, NULL, NULL);
    both(server, client);
    return 0;
}

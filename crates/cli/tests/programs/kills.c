/* Starts itself again and again, and kills each of these processes at another moment of its start. None is waited for, so
   each stays as a zombie. */
#include <signal.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1) return pause();
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl(argv[0], argv[0], "child", (char *)0);
            _exit(1);
        }
        usleep(300 * i);
        kill(child, SIGKILL);
    }
    return 0;
}

// Runs a command under a filter of system calls like the default one of containers: what that refuses fails with
// EPERM, and clone3 with ENOSYS.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define REFUSE(number, error)                                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
int main(int argc, char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_clone3, ENOSYS),
        REFUSE(SYS_ptrace, EPERM),
        REFUSE(SYS_personality, EPERM),
        REFUSE(SYS_process_vm_readv, EPERM),
        REFUSE(SYS_process_vm_writev, EPERM),
        REFUSE(SYS_perf_event_open, EPERM),
        REFUSE(SYS_userfaultfd, EPERM),
        REFUSE(SYS_bpf, EPERM),
        REFUSE(SYS_unshare, EPERM),
        REFUSE(SYS_setns, EPERM),
        REFUSE(SYS_mount, EPERM),
        REFUSE(SYS_keyctl, EPERM),
        REFUSE(SYS_io_uring_setup, EPERM),
        REFUSE(SYS_kcmp, EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 99;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 98;
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 97;
}

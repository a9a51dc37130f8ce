//! The C library's functions for files, pipes, sockets and other descriptors. Which threads they order is
//! in [`channels`](super::channels).

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::channels::{closing, copied, created, incoming, outgoing, paired, polled, used};
use super::{memory, real};
use crate::arch::with_pc;
use crate::misuse::ExpectsSignal;

/// The parts of memory that a vector of buffers names, as far as `limit` bytes.
unsafe fn each_buffer(vector: usize, count: usize, limit: usize, mut f: impl FnMut(usize, usize)) {
    const MOST: usize = 1024;
    let mut left = limit;
    for i in 0..count.min(MOST) {
        // SAFETY: the program's vector, which the kernel has read or will.
        let [start, len] = unsafe { ((vector + i * 16) as *const [usize; 2]).read() };
        let len = len.min(left);
        f(start, len);
        left -= len;
    }
}

/// The vector of buffers in a message, with its length.
unsafe fn buffers(message: usize) -> (usize, usize) {
    // SAFETY: the program's structure.
    let [vector, count] = unsafe { ((message + 16) as *const [usize; 2]).read() };
    (vector, count)
}

/// Calls that move data: what happens to the buffers, given the result, and which way the data goes.
macro_rules! transfers {
    ($($imp:ident $name:ident($($arg:ident),*) $way:ident: |$pc:ident, $result:ident| $buffers:expr;)*) => {$(
        unsafe extern "C" fn $imp(fd: c_int, $($arg: usize,)* $pc: usize) -> isize {
            transfers!(@before $way fd $pc $result $buffers);
            let $result = real!($name(fd $(, $arg)*) as fn(c_int $(, transfers!(@type $arg))*) -> isize);
            transfers!(@after $way fd $pc $result $buffers);
            $result
        }
    )*};
    (@type $arg:ident) => { usize };
    (@before writes $fd:ident $pc:ident $result:ident $buffers:expr) => {
        // SAFETY: the program's own buffers.
        #[allow(unused_unsafe)]
        unsafe { $buffers };
        used($fd, $pc);
        outgoing($fd, $pc);
    };
    (@after writes $fd:ident $pc:ident $result:ident $buffers:expr) => {};
    (@before reads $fd:ident $pc:ident $result:ident $buffers:expr) => { used($fd, $pc); };
    (@after reads $fd:ident $pc:ident $result:ident $buffers:expr) => {
        if $result >= 0 {
            incoming($fd, $pc);
            // SAFETY: the program's own buffers.
            #[allow(unused_unsafe)]
            unsafe { $buffers };
        }
    };
}

transfers! {
    do_read read(buffer, len) reads: |pc, got| memory::writes(buffer, got as usize, pc);
    do_pread pread(buffer, len, at) reads: |pc, got| memory::writes(buffer, got as usize, pc);
    do_pread64 pread64(buffer, len, at) reads: |pc, got| memory::writes(buffer, got as usize, pc);
    do_recv recv(buffer, len, flags) reads: |pc, got|
        memory::writes(buffer, (got as usize).min(len), pc);
    do_recvfrom recvfrom(buffer, len, flags, from, from_len) reads: |pc, got|
        memory::writes(buffer, (got as usize).min(len), pc);
    do_readv readv(vector, count) reads: |pc, got|
        each_buffer(vector, count, got as usize, |at, len| memory::writes(at, len, pc));
    do_preadv preadv(vector, count, at) reads: |pc, got|
        each_buffer(vector, count, got as usize, |at, len| memory::writes(at, len, pc));
    do_recvmsg recvmsg(message, flags) reads: |pc, got| {
        let (vector, count) = buffers(message);
        each_buffer(vector, count, got as usize, |at, len| memory::writes(at, len, pc));
    };
    do_write write(buffer, len) writes: |pc, put| memory::reads(buffer, len, pc);
    do_pwrite pwrite(buffer, len, at) writes: |pc, put| memory::reads(buffer, len, pc);
    do_pwrite64 pwrite64(buffer, len, at) writes: |pc, put| memory::reads(buffer, len, pc);
    do_send send(buffer, len, flags) writes: |pc, put| memory::reads(buffer, len, pc);
    do_sendto sendto(buffer, len, flags, to, to_len) writes: |pc, put| memory::reads(buffer, len, pc);
    do_writev writev(vector, count) writes: |pc, put|
        each_buffer(vector, count, usize::MAX, |at, len| memory::reads(at, len, pc));
    do_pwritev pwritev(vector, count, at) writes: |pc, put|
        each_buffer(vector, count, usize::MAX, |at, len| memory::reads(at, len, pc));
    do_sendmsg sendmsg(message, flags) writes: |pc, put| {
        let (vector, count) = buffers(message);
        each_buffer(vector, count, usize::MAX, |at, len| memory::reads(at, len, pc));
    };
}

/// Calls that announce something on a descriptor, their first argument.
macro_rules! announces {
    ($($imp:ident $name:ident($($arg:ident),*);)*) => {$(
        unsafe extern "C" fn $imp(fd: c_int, $($arg: usize,)* pc: usize) -> c_int {
            used(fd, pc);
            outgoing(fd, pc);
            real!($name(fd $(, $arg)*) as fn(c_int $(, announces!(@type $arg))*) -> c_int)
        }
    )*};
    (@type $arg:ident) => { usize };
}

announces! {
    do_sendmmsg sendmmsg(messages, count, flags);
    do_bind bind(address, len);
    do_listen listen(backlog);
    do_shutdown shutdown(how);
    do_settime timerfd_settime(flags, new, old);
}

/// Calls that wait for something on a descriptor, their first argument; more than 0 if it has come.
macro_rules! awaits {
    ($($imp:ident $name:ident($($arg:ident),*);)*) => {$(
        unsafe extern "C" fn $imp(fd: c_int, $($arg: usize,)* pc: usize) -> c_int {
            used(fd, pc);
            let come = real!($name(fd $(, $arg)*) as fn(c_int $(, awaits!(@type $arg))*) -> c_int);
            if come > 0 {
                incoming(fd, pc);
            }
            come
        }
    )*};
    (@type $arg:ident) => { usize };
}

awaits! {
    do_recvmmsg recvmmsg(messages, count, flags, time);
    do_epoll_wait epoll_wait(events, most, time);
    do_epoll_pwait epoll_pwait(events, most, time, mask);
}

unsafe extern "C" fn do_sendfile(
    to: c_int,
    from: c_int,
    at: usize,
    len: usize,
    pc: usize,
) -> isize {
    used(to, pc);
    used(from, pc);
    outgoing(to, pc);
    let moved = real!(sendfile(to, from, at, len) as fn(c_int, c_int, usize, usize) -> isize);
    if moved >= 0 {
        incoming(from, pc);
    }
    moved
}

/// Both names of `open`; under control some files are others.
macro_rules! opens {
    ($($imp:ident $name:ident;)*) => {$(
        unsafe extern "C" fn $imp(path: usize, flags: usize, mode: usize, pc: usize) -> c_int {
            // SAFETY: the program's string.
            let instead = unsafe { crate::control::sources::opening(path) };
            let open = || real!($name(path, flags, mode) as fn(usize, usize, usize) -> c_int);
            created(instead.unwrap_or_else(open), pc)
        }
    )*};
}

opens! {
    do_open open;
    do_open64 open64;
}

/// Calls that hand out one number.
macro_rules! creates {
    ($($imp:ident $name:ident($($arg:ident),*);)*) => {$(
        unsafe extern "C" fn $imp($($arg: usize,)* pc: usize) -> c_int {
            created(real!($name($($arg),*) as fn($(creates!(@type $arg)),*) -> c_int), pc)
        }
    )*};
    (@type $arg:ident) => { usize };
}

creates! {
    do_openat openat(directory, path, flags, mode);
    do_openat64 openat64(directory, path, flags, mode);
    do_creat creat(path, mode);
    do_socket socket(domain, kind, protocol);
    do_eventfd eventfd(value, flags);
    do_epoll_create epoll_create(size);
    do_epoll_create1 epoll_create1(flags);
    do_timerfd_create timerfd_create(clock, flags);
    do_inotify_init inotify_init();
    do_inotify_init1 inotify_init1(flags);
    do_memfd_create memfd_create(name, flags);
}

unsafe extern "C" fn do_accept(fd: c_int, address: usize, len: usize, pc: usize) -> c_int {
    used(fd, pc);
    accepted(fd, real!(accept(fd, address, len) as fn(c_int, usize, usize) -> c_int), pc)
}

unsafe extern "C" fn do_accept4(
    fd: c_int,
    address: usize,
    len: usize,
    flags: c_int,
    pc: usize,
) -> c_int {
    used(fd, pc);
    let new = real!(accept4(fd, address, len, flags) as fn(c_int, usize, usize, c_int) -> c_int);
    accepted(fd, new, pc)
}

fn accepted(fd: c_int, new: c_int, pc: usize) -> c_int {
    if new >= 0 {
        incoming(fd, pc);
    }
    created(new, pc)
}

/// A listener exists before a thread connects to it, and a connection begins before it is accepted.
unsafe extern "C" fn do_connect(fd: c_int, address: usize, len: usize, pc: usize) -> c_int {
    used(fd, pc);
    outgoing(fd, pc);
    let result = real!(connect(fd, address, len) as fn(c_int, usize, usize) -> c_int);
    incoming(fd, pc);
    result
}

unsafe extern "C" fn do_close(fd: c_int, pc: usize) -> c_int {
    closing(fd, pc);
    real!(close(fd) as fn(c_int) -> c_int)
}

unsafe extern "C" fn do_pipe(ends: *mut [c_int; 2], pc: usize) -> c_int {
    let result = real!(pipe(ends) as fn(*mut [c_int; 2]) -> c_int);
    both_created(result, ends, pc);
    result
}

unsafe extern "C" fn do_pipe2(ends: *mut [c_int; 2], flags: c_int, pc: usize) -> c_int {
    let result = real!(pipe2(ends, flags) as fn(*mut [c_int; 2], c_int) -> c_int);
    both_created(result, ends, pc);
    result
}

fn both_created(result: c_int, ends: *mut [c_int; 2], pc: usize) -> Option<[c_int; 2]> {
    if result != 0 {
        return None;
    }
    // SAFETY: the C library has just written there.
    let both = unsafe { ends.read() };
    Some(both.map(|fd| created(fd, pc)))
}

unsafe extern "C" fn do_socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    ends: *mut [c_int; 2],
    pc: usize,
) -> c_int {
    let result = real!(socketpair(domain, kind, protocol, ends)
        as fn(c_int, c_int, c_int, *mut [c_int; 2]) -> c_int);
    if let Some([first, second]) = both_created(result, ends, pc) {
        paired(first, second);
    }
    result
}

unsafe extern "C" fn do_dup(old: c_int, pc: usize) -> c_int {
    used(old, pc);
    copied(old, real!(dup(old) as fn(c_int) -> c_int), pc)
}

unsafe extern "C" fn do_dup2(old: c_int, new: c_int, pc: usize) -> c_int {
    if old != new {
        closing(new, pc);
    }
    let result = real!(dup2(old, new) as fn(c_int, c_int) -> c_int);
    if old == new { result } else { copied(old, result, pc) }
}

unsafe extern "C" fn do_dup3(old: c_int, new: c_int, flags: c_int, pc: usize) -> c_int {
    closing(new, pc);
    copied(old, real!(dup3(old, new, flags) as fn(c_int, c_int, c_int) -> c_int), pc)
}

macro_rules! controls {
    ($($imp:ident $name:ident;)*) => {$(
        unsafe extern "C" fn $imp(fd: c_int, command: c_int, argument: usize, pc: usize) -> c_int {
            let result = real!($name(fd, command, argument) as fn(c_int, c_int, usize) -> c_int);
            after_fcntl(fd, command, result, pc)
        }
    )*};
}

controls! {
    do_fcntl fcntl;
    do_fcntl64 fcntl64;
}

fn after_fcntl(fd: c_int, command: c_int, result: c_int, pc: usize) -> c_int {
    const DUPLICATE: c_int = 0;
    const DUPLICATE_CLOEXEC: c_int = 1030;
    match command {
        DUPLICATE | DUPLICATE_CLOEXEC => copied(fd, result, pc),
        _ => result,
    }
}

unsafe extern "C" fn do_epoll_ctl(
    set: c_int,
    op: c_int,
    fd: c_int,
    event: usize,
    pc: usize,
) -> c_int {
    const DELETE: c_int = 2;
    used(set, pc);
    used(fd, pc);
    outgoing(set, pc);
    polled(fd, (op != DELETE).then_some(set));
    real!(epoll_ctl(set, op, fd, event) as fn(c_int, c_int, c_int, usize) -> c_int)
}

unsafe extern "C" fn do_poll(list: usize, count: usize, time: c_int, pc: usize) -> c_int {
    let ready = real!(poll(list, count, time) as fn(usize, usize, c_int) -> c_int);
    after_poll(list, count, ready, pc)
}

unsafe extern "C" fn do_ppoll(
    list: usize,
    count: usize,
    time: usize,
    mask: usize,
    pc: usize,
) -> c_int {
    let _expected = (mask != 0).then(ExpectsSignal::begin);
    let ready = real!(ppoll(list, count, time, mask) as fn(usize, usize, usize, usize) -> c_int);
    after_poll(list, count, ready, pc)
}

fn after_poll(list: usize, count: usize, ready: c_int, pc: usize) -> c_int {
    if ready <= 0 {
        return ready;
    }
    for i in 0..count {
        // SAFETY: the program's list, which the kernel has filled.
        let (fd, _, events) = unsafe { ((list + i * 8) as *const (c_int, i16, i16)).read() };
        if events != 0 {
            incoming(fd, pc);
        }
    }
    ready
}

with_pc! {
    read => do_read, 3;
    pread => do_pread, 4;
    pread64 => do_pread64, 4;
    recv => do_recv, 4;
    readv => do_readv, 3;
    preadv => do_preadv, 4;
    recvmsg => do_recvmsg, 3;
    write => do_write, 3;
    pwrite => do_pwrite, 4;
    pwrite64 => do_pwrite64, 4;
    send => do_send, 4;
    writev => do_writev, 3;
    pwritev => do_pwritev, 4;
    sendmsg => do_sendmsg, 3;
    sendmmsg => do_sendmmsg, 4;
    recvmmsg => do_recvmmsg, 5;
    sendfile => do_sendfile, 4;
    open => do_open, 3;
    open64 => do_open64, 3;
    openat => do_openat, 4;
    openat64 => do_openat64, 4;
    creat => do_creat, 2;
    socket => do_socket, 3;
    accept => do_accept, 3;
    accept4 => do_accept4, 4;
    connect => do_connect, 3;
    bind => do_bind, 3;
    listen => do_listen, 2;
    shutdown => do_shutdown, 2;
    close => do_close, 1;
    pipe => do_pipe, 1;
    pipe2 => do_pipe2, 2;
    socketpair => do_socketpair, 4;
    dup => do_dup, 1;
    dup2 => do_dup2, 2;
    dup3 => do_dup3, 3;
    fcntl => do_fcntl, 3;
    fcntl64 => do_fcntl64, 3;
    eventfd => do_eventfd, 2;
    epoll_create => do_epoll_create, 1;
    epoll_create1 => do_epoll_create1, 1;
    epoll_ctl => do_epoll_ctl, 4;
    epoll_wait => do_epoll_wait, 4;
    epoll_pwait => do_epoll_pwait, 5;
    poll => do_poll, 3;
    ppoll => do_ppoll, 4;
    timerfd_create => do_timerfd_create, 2;
    timerfd_settime => do_settime, 4;
    inotify_init => do_inotify_init, 0;
    inotify_init1 => do_inotify_init1, 1;
    memfd_create => do_memfd_create, 2;
}

/// All argument registers are taken: the caller is not known, and the buffer is not looked at.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: usize,
    len: usize,
    flags: usize,
    from: usize,
    from_len: usize,
) -> isize {
    // SAFETY: the program's own call.
    unsafe { do_recvfrom(fd, buffer, len, flags, from, from_len, 0) }
}

/// As `recvfrom`.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    buffer: usize,
    len: usize,
    flags: usize,
    to: usize,
    to_len: usize,
) -> isize {
    // SAFETY: the program's own call.
    unsafe { do_sendto(fd, buffer, len, flags, to, to_len, 0) }
}

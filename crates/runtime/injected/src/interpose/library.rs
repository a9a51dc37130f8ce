//! What functions of the C library read and write for the program: the ranges of their arguments and results. The
//! library itself is not instrumented.
//!
//! One line of the table is one function: its arguments, what it reads and writes before it is called, and, where only
//! the result says how much, after. Functions that return memory of their own that the next call writes again
//! (`localtime`) write it; `strtok` without a string writes what it keeps between two calls.
//!
//! Guarantee: a range is what the function accesses by its definition, as far as the result shows. May miss: what a
//! function reads of a string behind the part that decides its result.

#![allow(missing_docs)] // The names are the C library's.

use super::memory::{length, reads, writes};
use super::real;
use crate::arch::with_pc;
use crate::misuse;

/// A string with its end.
fn string(s: usize, pc: usize) {
    if s != 0 && super::instrumented(pc) {
        reads(s, length(s) + 1, pc);
    }
}

/// A string that was written, with its end.
fn written(s: usize, pc: usize) {
    if s != 0 && super::instrumented(pc) {
        writes(s, length(s) + 1, pc);
    }
}

/// As much of a string as was looked at: up to where `end` points, which the function has written.
fn parsed(s: usize, end: usize, pc: usize) {
    if end != 0 {
        // SAFETY: the program's variable, which the C library has written.
        let stopped = unsafe { (end as *const usize).read() };
        reads(s, stopped.wrapping_sub(s) + 1, pc);
        writes(end, size_of::<usize>(), pc);
    } else {
        string(s, pc);
    }
}

/// Something of a fixed size, unless the pointer is null.
fn fixed(at: usize, len: usize, pc: usize) {
    if at != 0 {
        writes(at, len, pc);
    }
}

/// What `strtok` keeps between two calls, for all threads.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[allow(non_upper_case_globals)]
pub static strtok_state: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

fn tokens(s: usize, delimiters: usize, token: usize, pc: usize) {
    string(delimiters, pc);
    if s != 0 && token == 0 {
        string(s, pc);
    }
    if token != 0 && super::instrumented(pc) {
        let len = length(token);
        reads(token, len, pc);
        writes(token + len, 1, pc);
    }
}

/// The numbers of functions that handlers must not call.
const PUTS: u32 = 8;
const FPUTS: u32 = 9;
const EXIT: u32 = 10;

/// Bytes of structures.
const TM: usize = 56;
const STAT: usize = 144;
const TIME: usize = 16;

macro_rules! table {
    ($($imp:ident $name:ident $(@ $version:literal)? ($($arg:ident),*) $arguments:tt |$pc:ident| $before:expr
        $(, then |$result:ident| $after:expr)?;)*) => {
        $(
            unsafe extern "C" fn $imp($($arg: usize,)* $pc: usize) -> usize {
                let () = $before;
                let result = real!($name $(@ $version)? ($($arg),*) as fn($(table!(@ $arg)),*) -> usize);
                $(
                    let _errno = super::Errno::keep();
                    let $result = result;
                    let () = $after;
                )?
                result
            }
        )*
        with_pc! { $($name => $imp, $arguments;)* }
    };
    (@ $arg:ident) => { usize };
}

// Strings and streams.
table! {
    do_puts puts(s) 1 |pc| { misuse::calls_unsafe(PUTS, pc); string(s, pc) };
    do_fputs fputs(s, stream) 2 |pc| { misuse::calls_unsafe(FPUTS, pc); string(s, pc) };
    do_perror perror(s) 1 |pc| string(s, pc);
    do_fwrite fwrite(from, size, count, stream) 4 |pc| reads(from, size.saturating_mul(count), pc);
    do_fread fread(to, size, count, stream) 4 |pc| (), then |got| writes(to, size * got, pc);
    do_fgets fgets(to, limit, stream) 3 |pc| (), then |got| written(got, pc);
    do_strdup strdup(s) 1 |pc| string(s, pc);
    do_strstr strstr(s, part) 2 |pc| { string(s, pc); string(part, pc) };
    do_strrchr strrchr(s, c) 2 |pc| string(s, pc);
    do_strspn strspn(s, set) 2 |pc| string(set, pc), then |n| reads(s, n + 1, pc);
    do_strcspn strcspn(s, set) 2 |pc| string(set, pc), then |n| reads(s, n + 1, pc);
    do_stpcpy stpcpy(to, from) 2 |pc| string(from, pc), then |end| writes(to, end - to + 1, pc);
    do_strtok strtok(s, delimiters) 2 |pc|
        writes((&raw const strtok_state) as usize, 8, pc), then |token| tokens(s, delimiters, token, pc);
    do_strtok_r strtok_r(s, delimiters, kept) 3 |pc| (), then |token| {
        writes(kept, 8, pc);
        tokens(s, delimiters, token, pc);
    };
    do_strerror_r strerror_r(error, to, len) 3 |pc| (), then |text| if text == to {
        written(to, pc);
    };
    do_xpg_strerror_r __xpg_strerror_r(error, to, len) 3 |pc| (), then |failed| if failed as u32 == 0 {
        written(to, pc);
    };
    do_getenv getenv(name) 1 |pc| string(name, pc);
    do_exit exit(code) 1 |pc| {
        misuse::calls_unsafe(EXIT, pc);
        crate::init::linger();
    };
}

// Numbers.
table! {
    do_atoi atoi(s) 1 |pc| string(s, pc);
    do_atol atol(s) 1 |pc| string(s, pc);
    do_strtol strtol(s, end, base) 3 |pc| (), then |_value| parsed(s, end, pc);
    do_strtoul strtoul(s, end, base) 3 |pc| (), then |_value| parsed(s, end, pc);
    do_strtoll strtoll(s, end, base) 3 |pc| (), then |_value| parsed(s, end, pc);
    do_strtoull strtoull(s, end, base) 3 |pc| (), then |_value| parsed(s, end, pc);
    do_qsort qsort(base, count, size, compare) 4 |pc| writes(base, count.saturating_mul(size), pc);
    do_qsort_r qsort_r(base, count, size, compare, argument) 5 |pc|
        writes(base, count.saturating_mul(size), pc);
}

// Time, files and the system.
table! {
    do_localtime localtime(time) 1 |pc| reads(time, 8, pc), then |tm| fixed(tm, TM, pc);
    do_gmtime gmtime(time) 1 |pc| reads(time, 8, pc), then |tm| fixed(tm, TM, pc);
    do_localtime_r localtime_r(time, tm) 2 |pc| { reads(time, 8, pc); fixed(tm, TM, pc) };
    do_gmtime_r gmtime_r(time, tm) 2 |pc| { reads(time, 8, pc); fixed(tm, TM, pc) };
    do_mktime mktime(tm) 1 |pc| fixed(tm, TM, pc);
    do_asctime asctime(tm) 1 |pc| reads(tm, TM, pc), then |text| written(text, pc);
    do_ctime ctime(time) 1 |pc| reads(time, 8, pc), then |text| written(text, pc);
    do_strftime strftime(to, limit, format, tm) 4 |pc| { string(format, pc); reads(tm, TM, pc) },
        then |n| if n != 0 {
            writes(to, n + 1, pc);
        };
    do_stat stat(path, to) 2 |pc| string(path, pc), then |failed| if failed as u32 == 0 {
        writes(to, STAT, pc);
    };
    do_lstat lstat(path, to) 2 |pc| string(path, pc), then |failed| if failed as u32 == 0 {
        writes(to, STAT, pc);
    };
    do_fstat fstat(fd, to) 2 |pc| (), then |failed| if failed as u32 == 0 {
        writes(to, STAT, pc);
    };
    do_readlink readlink(path, to, limit) 3 |pc| string(path, pc), then |n| if n as isize > 0 {
        writes(to, n, pc);
    };
    do_getcwd getcwd(to, limit) 2 |pc| (), then |got| if to != 0 {
        written(got, pc);
    };
    do_realpath realpath @ "GLIBC_2.3" (path, to) 2 |pc| string(path, pc), then |got| if to != 0 {
        written(got, pc);
    };
    do_gethostname gethostname(to, limit) 2 |pc| (), then |failed| if failed as u32 == 0 {
        written(to, pc);
    };
    do_uname uname(to) 1 |pc| (), then |failed| if failed as u32 == 0 {
        writes(to, 390, pc);
    };
    do_unlink unlink(path) 1 |pc| string(path, pc);
    do_remove remove(path) 1 |pc| string(path, pc);
    do_rename rename(from, to) 2 |pc| { string(from, pc); string(to, pc) };
    do_mkdir mkdir(path, mode) 2 |pc| string(path, pc);
    do_access access(path, mode) 2 |pc| string(path, pc);
    do_wait wait(status) 1 |pc| (), then |pid| if pid as i32 > 0 {
        fixed(status, 4, pc);
    };
    do_waitpid waitpid(child, status, options) 3 |pc| (), then |pid| if pid as i32 > 0 {
        fixed(status, 4, pc);
    };
    do_clock_getres clock_getres(clock, to) 2 |pc| fixed(to, TIME, pc);
}

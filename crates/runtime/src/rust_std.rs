//! Rust programs whose standard library is not instrumented: stubs around its precompiled slow paths tell
//! the runtime how they order threads.
//!
//! The fast paths of `std::sync` are inlined into the program and instrumented like it; they release
//! and acquire at the address of the lock. The slow paths are in the library, so `ld --wrap` sends
//! calls to them through a stub that says what happened there. The functions are found by name in the
//! library's archive index; mangled names differ from version to version, the path in them does not.
//!
//! Guarantee: every stub adds order, never takes it away. Where the thread that ended a wait is not known
//! (`park`), the wait is ordered after everything released so far, which may hide races but never raises a
//! false alarm. A library without one of the functions (another version) gets no stub for it.

use std::io;
use std::path::Path;

/// What a function does to the order of threads, in terms of its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// Acquires at the first argument.
    AcquiresSelf,
    /// Waits for the lock that is the first argument, and has it.
    Locks,
    /// The same, with others that do not write.
    LocksShared,
    /// Releases and acquires at the first argument.
    MeetsAtSelf,
    /// Gives up the lock that is the second argument, waits, and takes it again.
    WaitsOnSecond,
    /// Has waited for a thread that is not known.
    Waits,
    /// Releases at one of the first three words behind the first argument.
    ReleasesInside,
    /// Calls its third and fourth argument, a closure, and releases at the first when that returns;
    /// acquires there in any case.
    CallsOnce,
}

/// Functions by the end of their mangled name, after what varies.
const FUNCTIONS: [(&str, &str, Effect); 11] = [
    ("5mutex5futex", "5Mutex14lock_contended", Effect::Locks),
    ("6rwlock5futex", "6RwLock14read_contended", Effect::LocksShared),
    ("6rwlock5futex", "6RwLock15write_contended", Effect::Locks),
    ("7condvar5futex", "7Condvar4wait", Effect::WaitsOnSecond),
    ("7condvar5futex", "7Condvar12wait_timeout", Effect::WaitsOnSecond),
    ("4sync7barrier", "7Barrier4wait", Effect::MeetsAtSelf),
    ("4sync4once", "4Once4wait", Effect::AcquiresSelf),
    ("4once5futex", "4Once4call", Effect::CallsOnce),
    ("6thread9functions", "4park", Effect::Waits),
    ("6thread9functions", "12park_timeout", Effect::Waits),
    ("6thread6scoped", "9ScopeData29decrement_num_running_threads", Effect::ReleasesInside),
];

/// What a Rust program is linked with besides the runtime.
#[derive(Clone, Debug)]
pub struct Stubs {
    /// Assembly to be translated with `cc -c`.
    pub assembly: String,
    /// The functions to pass to the linker with `--wrap=`.
    pub wrapped: Vec<String>,
}

impl Stubs {
    /// Stubs for the standard library in `rlib`.
    pub fn for_library(rlib: &Path) -> io::Result<Stubs> {
        let symbols = archive_symbols(&std::fs::read(rlib)?);
        Ok(Stubs::for_symbols(symbols.iter().map(String::as_str)))
    }

    fn for_symbols<'a>(symbols: impl Iterator<Item = &'a str>) -> Stubs {
        let mut stubs = Stubs { assembly: String::from(HEAD), wrapped: Vec::new() };
        for symbol in symbols {
            let effect = FUNCTIONS
                .iter()
                .find(|(module, function, _)| symbol.contains(module) && symbol.ends_with(function))
                .map(|&(_, _, effect)| effect);
            if let Some(effect) = effect {
                stubs.assembly.push_str(&stub(symbol, effect));
                stubs.wrapped.push(symbol.to_owned());
            }
        }
        stubs
    }

    /// The arguments for the linker driver.
    pub fn link_arguments(&self) -> Vec<String> {
        self.wrapped.iter().map(|s| format!("-Wl,--wrap={s}")).collect()
    }
}

/// Says that not all of the program is instrumented, and how a closure is called for `CallsOnce`: by
/// one of ours that stands in for it, which releases before the library sees that it has returned.
const HEAD: &str = r#"
    .intel_syntax noprefix
    .section .note.GNU-stack,"",@progbits
    .text
    .globl selvedge_mixed_module
    .set selvedge_mixed_module, 1
selvedge_closure_call:
    push rbx
    mov rbx, rdi
    mov rdi, [rbx]
    mov rax, [rbx + 8]
    call [rax + 32]
    mov rdi, [rbx + 16]
    call __tsan_release
    pop rbx
    ret
selvedge_closure_trap:
    ud2
    .section .data.rel.ro,"aw",@progbits
    .balign 8
selvedge_closure_table:
    .quad 0, 24, 8, selvedge_closure_trap, selvedge_closure_call
    .text
"#;

fn stub(symbol: &str, effect: Effect) -> String {
    let (before, after) = match effect {
        Effect::AcquiresSelf => ("", "mov rdi, rbx\n call __tsan_acquire"),
        Effect::MeetsAtSelf => {
            ("mov rdi, rbx\n call __tsan_release", "mov rdi, rbx\n call __tsan_acquire")
        }
        Effect::Locks => ("", "mov rdi, rbx\n xor esi, esi\n call selvedge_std_locked"),
        Effect::LocksShared => ("", "mov rdi, rbx\n mov esi, 1\n call selvedge_std_locked"),
        Effect::WaitsOnSecond => (
            "mov rdi, r12\n xor esi, esi\n call selvedge_std_unlocking",
            "mov rdi, r12\n xor esi, esi\n call selvedge_std_locked",
        ),
        Effect::Waits => ("", "call selvedge_acquire_all"),
        Effect::ReleasesInside => (
            "mov rdi, rbx\n call __tsan_release\n lea rdi, [rbx + 8]\n call __tsan_release\n \
             lea rdi, [rbx + 16]\n call __tsan_release",
            "",
        ),
        Effect::CallsOnce => return once_stub(symbol),
    };
    format!(
        "
    .globl __wrap_{symbol}
__wrap_{symbol}:
    push rbx
    push r12
    push rdi
    push rsi
    push rdx
    push rcx
    push r8
    mov rbx, rdi
    mov r12, rsi
    {before}
    pop r8
    pop rcx
    pop rdx
    pop rsi
    pop rdi
    sub rsp, 8
    call __real_{symbol}
    push rax
    push rdx
    {after}
    pop rdx
    pop rax
    add rsp, 8
    pop r12
    pop rbx
    ret
"
    )
}

/// `call(&self, ignore_poison, closure data, closure table, …)`
fn once_stub(symbol: &str) -> String {
    format!(
        "
    .globl __wrap_{symbol}
__wrap_{symbol}:
    push rbx
    sub rsp, 32
    mov rbx, rdi
    mov [rsp], rdx
    mov [rsp + 8], rcx
    mov [rsp + 16], rdi
    mov rdx, rsp
    lea rcx, [rip + selvedge_closure_table]
    call __real_{symbol}
    mov rdi, rbx
    call __tsan_acquire
    add rsp, 32
    pop rbx
    ret
"
    )
}

/// The names in the index of a `!<arch>` file.
fn archive_symbols(bytes: &[u8]) -> Vec<String> {
    const MAGIC: &[u8] = b"!<arch>\n";
    const HEADER: usize = 60;
    let index = || -> Option<&[u8]> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let header = rest.get(..HEADER)?;
        let wide = header.starts_with(b"/SYM64/ ");
        (wide || header.starts_with(b"/ ")).then_some(())?;
        let size: usize = std::str::from_utf8(&header[48..58]).ok()?.trim().parse().ok()?;
        let body = rest.get(HEADER..HEADER + size)?;
        let width = if wide { 8 } else { 4 };
        let count = body.get(..width)?.iter().fold(0usize, |n, &b| n << 8 | usize::from(b));
        body.get(width * (count.checked_add(1)?)..)
    };
    let names = index().unwrap_or(&[]).split(|&b| b == 0).filter(|n| !n.is_empty());
    names.map(|n| String::from_utf8_lossy(n).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_whatever_the_hashes_are() {
        let symbols = [
            "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
            "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex4wake",
            "_RNvMs0_NtNtNtNtCsX_3std3sys4sync4once5futexNtB5_4Once4call",
        ];
        let stubs = Stubs::for_symbols(symbols.into_iter());
        assert_eq!(stubs.wrapped, [symbols[0], symbols[2]]);
        assert!(stubs.assembly.contains("selvedge_mixed_module"));
    }
}

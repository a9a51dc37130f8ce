//! The place of a race's earlier access.
//!
//! Shadow memory has room only for the low bits of a return address. In small programs one address has
//! these bits; in larger ones, and with libraries, several do. Before the right one there is a call into
//! the runtime that fits what the access did.

use std::collections::HashMap;

use crate::modules::{Call, Modules, Resolve};
use crate::wire::{AccessKind, SHADOW_PC_BITS};

/// The part of a return address that shadow memory keeps.
pub(crate) const LOW: u64 = (1 << SHADOW_PC_BITS) - 1;

/// The places of earlier accesses that were restored, by the race's number in the table of one process.
#[derive(Debug, Default)]
pub(crate) struct Restored(HashMap<usize, Option<Earlier>>);

impl Restored {
    /// That of the race with this number. It is restored once, whoever asks.
    pub(crate) fn of(
        &mut self,
        number: usize,
        restore: impl FnOnce() -> Option<Earlier>,
    ) -> Option<Earlier> {
        *self.0.entry(number).or_insert_with(restore)
    }
}

/// A restored return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Earlier {
    pub(crate) pc: u64,
    /// No other address fits as well.
    pub(crate) certain: bool,
}

/// How well a call fits, best last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fit {
    /// A call of an unknown function.
    Possible,
    /// A function that announces accesses of another kind.
    Runtime,
    /// A function that announces such accesses.
    Exact,
}

/// The return address with the low bits of `low` that fits best. If several fit equally well, one in the
/// module of `near`, marked as not certain.
pub(crate) fn restore(
    low: u64,
    kind: AccessKind,
    near: u64,
    modules: &Modules,
    resolver: &mut dyn Resolve,
) -> Option<Earlier> {
    const STEP: u64 = LOW + 1;
    let low = low & LOW;
    let home = modules.find(near).map(|m| m.start);
    let mut best: Vec<(Fit, bool, u64)> = Vec::new();
    for module in modules.iter() {
        let first = (module.start & !(STEP - 1)) | low;
        let first = if first < module.start { first + STEP } else { first };
        for pc in (first..module.end).step_by(STEP as usize) {
            if let Some(fit) = fit(&resolver.call_before(pc, modules), kind) {
                best.push((fit, Some(module.start) == home, pc));
            }
        }
    }
    best.sort_unstable();
    let &(fit, _, pc) = best.last()?;
    let rivals = best.iter().filter(|b| b.0 == fit).count();
    Some(Earlier { pc, certain: rivals == 1 })
}

fn fit(call: &Call, kind: AccessKind) -> Option<Fit> {
    match call {
        Call::None => None,
        Call::Unknown => Some(Fit::Possible),
        Call::Of(name) => {
            // Ours announce what loops and lanes of vectors have done.
            const PREFIXES: [&str; 4] =
                ["__tsan_", "__sanitizer_", "selvedge_sweep_", "selvedge_lanes_"];
            match PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
                Some(announces) if announces.starts_with("func_") => None,
                Some(announces) if announces_such(announces, kind) => Some(Fit::Exact),
                Some(_) => Some(Fit::Runtime),
                // The runtime also stands in for functions that copy and free.
                None if copies(name) && matches!(kind, AccessKind::Read | AccessKind::Write) => {
                    Some(Fit::Exact)
                }
                None if frees(name) && kind == AccessKind::Free => Some(Fit::Exact),
                None if allocates(name) && kind == AccessKind::Allocate => Some(Fit::Exact),
                None if uses(name) && matches!(kind, AccessKind::Use | AccessKind::Close) => {
                    Some(Fit::Exact)
                }
                None => None,
            }
        }
    }
}

fn announces_such(name: &str, kind: AccessKind) -> bool {
    let atomic = name.starts_with("atomic");
    match kind {
        AccessKind::Read => !atomic && (name.contains("read") || name.contains("unaligned_load")),
        AccessKind::Write => {
            let writes = ["write", "update", "unaligned_store"];
            !atomic && writes.iter().any(|word| name.contains(word))
        }
        AccessKind::AtomicRead => atomic && (name.contains("load") || name.contains("compare")),
        AccessKind::AtomicWrite => atomic && !name.contains("load"),
        AccessKind::Free
        | AccessKind::Use
        | AccessKind::Destroy
        | AccessKind::Lock
        | AccessKind::Unlock
        | AccessKind::WaitFor
        | AccessKind::Close
        | AccessKind::Open
        | AccessKind::Start
        | AccessKind::Install
        | AccessKind::Handle
        | AccessKind::Call
        | AccessKind::Allocate => false,
    }
}

/// Whether a function of the C library reads or writes what its arguments name, and the runtime says so.
fn copies(name: &str) -> bool {
    const BEGINNINGS: [&str; 34] = [
        "mem",
        "str",
        "stp",
        "wmem",
        "bcopy",
        "bzero",
        "read",
        "write",
        "recv",
        "send",
        "pread",
        "pwrite",
        "puts",
        "fputs",
        "perror",
        "fwrite",
        "fread",
        "fgets",
        "qsort",
        "ato",
        "getenv",
        "localtime",
        "gmtime",
        "mktime",
        "asctime",
        "ctime",
        "stat",
        "lstat",
        "fstat",
        "getcwd",
        "gethostname",
        "uname",
        "wait",
        "clock_",
    ];
    const OTHERS: [&str; 7] =
        ["realpath", "unlink", "remove", "rename", "mkdir", "access", "xpg_strerror_r"];
    let plain = name.trim_start_matches('_');
    BEGINNINGS.iter().any(|p| plain.starts_with(p))
        || OTHERS.contains(&plain)
        || plain.ends_with("printf")
        || plain.ends_with("scanf")
}

fn frees(name: &str) -> bool {
    ["free", "cfree", "realloc", "reallocarray", "munmap"].contains(&name)
        || name.starts_with("_Zd")
}

fn allocates(name: &str) -> bool {
    ["malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "valloc"].contains(&name)
        || name.ends_with("memalign")
        || name.starts_with("_Zn")
}

/// Whether a function uses or closes a descriptor.
fn uses(name: &str) -> bool {
    ["accept", "bind", "close", "connect", "dup", "epoll", "listen", "pread", "pwrite", "timerfd"]
        .iter()
        .chain(&["read", "recv", "send", "shutdown", "write"])
        .any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_fit_what_the_access_did() {
        let of = |name: &str| fit(&Call::Of(String::from(name)), AccessKind::Write);
        assert_eq!(of("__tsan_write8"), Some(Fit::Exact));
        assert_eq!(of("__tsan_read_write8"), Some(Fit::Exact));
        assert_eq!(of("__tsan_read4"), Some(Fit::Runtime));
        assert_eq!(of("__tsan_func_exit"), None);
        assert_eq!(of("selvedge_sweep_write"), Some(Fit::Exact));
        assert_eq!(of("selvedge_lanes_read"), Some(Fit::Runtime));
        assert_eq!(of("memcpy"), Some(Fit::Exact));
        assert_eq!(of("__isoc99_sscanf"), Some(Fit::Exact));
        assert_eq!(of("pthread_self"), None);
        assert_eq!(fit(&Call::Of("_ZdlPvm".into()), AccessKind::Free), Some(Fit::Exact));
        assert_eq!(fit(&Call::Of("calloc".into()), AccessKind::Allocate), Some(Fit::Exact));
        assert_eq!(fit(&Call::Of("_Znwm".into()), AccessKind::Allocate), Some(Fit::Exact));
        assert_eq!(
            fit(&Call::Of("__tsan_atomic32_load".into()), AccessKind::AtomicRead),
            Some(Fit::Exact)
        );
        assert_eq!(
            fit(&Call::Of("__tsan_atomic32_load".into()), AccessKind::AtomicWrite),
            Some(Fit::Runtime)
        );
        assert_eq!(fit(&Call::Unknown, AccessKind::Read), Some(Fit::Possible));
        assert_eq!(fit(&Call::None, AccessKind::Read), None);
    }
}

//! Locks of Rust, recognised by the functions around an atomic operation.
//!
//! `std::sync` and `parking_lot` make their locks of atomics. The source file and the name of the
//! function say which step of which lock an operation is; inlined or not, the function is among the
//! frames at the operation and its callers.

use selvedge_model::{Frame, Mode, Site};
use selvedge_runtime::{LockPart, LockStep, Modules};

use super::{Symbolizer, is_library, shortened};

use LockStep::{Give, Inside, Take, Try};
use Mode::{Exclusive, Shared};

/// Steps by the end of the source file's path and the name of the function.
const STEPS: [(&str, &str, LockStep); 22] = [
    ("/sys/sync/mutex/futex.rs", "lock", Take(Exclusive)),
    ("/sys/sync/mutex/futex.rs", "try_lock", Try(Exclusive)),
    ("/sys/sync/mutex/futex.rs", "unlock", Give(Exclusive)),
    ("/sys/sync/rwlock/futex.rs", "read", Take(Shared)),
    ("/sys/sync/rwlock/futex.rs", "try_read", Try(Shared)),
    ("/sys/sync/rwlock/futex.rs", "read_unlock", Give(Shared)),
    ("/sys/sync/rwlock/futex.rs", "write", Take(Exclusive)),
    ("/sys/sync/rwlock/futex.rs", "try_write", Try(Exclusive)),
    ("/sys/sync/rwlock/futex.rs", "write_unlock", Give(Exclusive)),
    ("/raw_mutex.rs", "lock", Take(Exclusive)),
    ("/raw_mutex.rs", "try_lock", Try(Exclusive)),
    ("/raw_mutex.rs", "unlock", Give(Exclusive)),
    ("/raw_mutex.rs", "lock_slow", Inside),
    ("/raw_mutex.rs", "unlock_slow", Inside),
    ("/raw_rwlock.rs", "lock_exclusive", Take(Exclusive)),
    ("/raw_rwlock.rs", "try_lock_exclusive", Try(Exclusive)),
    ("/raw_rwlock.rs", "unlock_exclusive", Give(Exclusive)),
    ("/raw_rwlock.rs", "lock_shared", Take(Shared)),
    ("/raw_rwlock.rs", "try_lock_shared", Try(Shared)),
    ("/raw_rwlock.rs", "unlock_shared", Give(Shared)),
    ("/raw_rwlock.rs", "lock_shared_slow", Inside),
    ("/raw_rwlock.rs", "lock_exclusive_slow", Inside),
];

/// Where `parking_lot` keeps who waits; nothing there is a lock of the program.
const WAITING: &str = "/parking_lot_core-";

/// The last part of a function's name, without the hash that older compilers add.
fn last_part(function: &str) -> &str {
    let is_hash = |s: &str| s.len() == 17 && s.starts_with('h');
    let mut parts = function.rsplit("::");
    parts.find(|part| !is_hash(part)).unwrap_or(function)
}

fn step_of(frame: &Frame) -> Option<LockStep> {
    if frame.file.contains(WAITING) {
        return Some(Inside);
    }
    let name = last_part(&frame.function);
    let found =
        STEPS.iter().find(|(file, function, _)| frame.file.ends_with(file) && *function == name);
    found.map(|&(_, _, step)| step)
}

/// Whether a file is part of a lock's own crates.
fn is_lock_crate(file: &str) -> bool {
    file.contains("/parking_lot-") || file.contains("/lock_api-")
}

impl Symbolizer {
    /// Which part of a lock an atomic operation is, if it is one. The slow paths of the standard library
    /// have stubs; those of other libraries are atomics like any other.
    pub(super) fn lock_step(
        &mut self,
        pc: u64,
        callers: &[u64],
        modules: &Modules,
    ) -> Option<LockPart<Site>> {
        let mut frames: Vec<Frame> = Vec::new();
        for &pc in std::iter::once(&pc).chain(callers.iter().take_while(|&&pc| pc != 0)) {
            let Some(module) = modules.find(pc).cloned() else { continue };
            let binary = self.binary(&module);
            let address = pc.wrapping_sub(binary.bias(&module)).wrapping_sub(1);
            frames.extend(binary.frames(address));
        }
        let at = frames.iter().position(|f| step_of(f).is_some())?;
        let step = step_of(&frames[at])?;
        let is_users = |f: &&Frame| !is_library(f) && !is_lock_crate(&f.file);
        let user = frames[at..].iter().find(is_users).unwrap_or(&frames[at]);
        let site = Site::Source(shortened(user.clone(), &self.root), Vec::new());
        Some(LockPart { step, site, complete: is_library(&frames[at]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, function: &str) -> Frame {
        Frame { file: file.into(), function: function.into(), ..Frame::default() }
    }

    #[test]
    fn functions_are_known_by_file_and_name() {
        let std = "/rustc/abc/library/std/src/sys/sync/mutex/futex.rs";
        let lock = "<std::sys::sync::mutex::futex::Mutex>::lock";
        assert_eq!(step_of(&frame(std, lock)), Some(Take(Exclusive)));
        assert_eq!(
            step_of(&frame(std, "std::sys::Mutex::unlock::h0123456789abcdef")),
            Some(Give(Exclusive))
        );
        assert_eq!(step_of(&frame(std, "std::sys::Mutex::wake")), None);
        let parking = "/home/u/.cargo/registry/src/index/parking_lot-0.12.4/src/raw_mutex.rs";
        assert_eq!(step_of(&frame(parking, "lock")), Some(Take(Exclusive)));
        let core = "/home/u/.cargo/registry/src/index/parking_lot_core-0.9.11/src/word_lock.rs";
        assert_eq!(step_of(&frame(core, "lock")), Some(Inside));
        assert_eq!(step_of(&frame("src/raw_mutex.c", "lock")), None);
    }
}

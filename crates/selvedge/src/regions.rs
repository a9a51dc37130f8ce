//! Blocks of code that claim to be atomic or deterministic.
//!
//! In a check the claim is an event of the execution. In a program that `cargo selvedge` has built, which
//! sets `selvedge_native`, the block tells the claim to the runtime that observes the program. Everywhere
//! else a block only calls its closure.

#![allow(unexpected_cfgs)] // `selvedge_native` is set by `cargo selvedge` alone.

#[cfg(feature = "check")]
use std::panic::Location;

/// Runs `f` as a block that claims to be atomic: to behave as if no other thread ran meanwhile. Analyses
/// of atomicity check the claim, in a check and in a program that `cargo selvedge` runs; elsewhere this
/// only calls `f`.
#[track_caller]
#[inline(always)]
pub fn atomic<R>(name: &str, f: impl FnOnce() -> R) -> R {
    let _block = Block::enter(name, Claim::Atomic);
    f()
}

/// Runs `f` as a block that claims to be deterministic: its result, and that of the threads that are
/// started in it, does not depend on the schedule. As for [`atomic`], analyses check the claim.
#[track_caller]
#[inline(always)]
pub fn deterministic<R>(name: &str, f: impl FnOnce() -> R) -> R {
    let _block = Block::enter(name, Claim::Deterministic);
    f()
}

#[derive(Clone, Copy)]
pub(crate) enum Claim {
    Atomic,
    Deterministic,
}

/// A block that has been entered. Dropping it leaves the block, also during a panic.
pub(crate) struct Block {
    #[cfg(feature = "check")]
    checked:
        Option<(selvedge_model::RegionId, selvedge_model::RegionKind, &'static Location<'static>)>,
    _marked: Option<native::Mark>,
}

impl Block {
    #[cfg(feature = "check")]
    #[track_caller]
    #[inline(always)]
    pub(crate) fn enter(name: &str, claim: Claim) -> Block {
        let kind = match claim {
            Claim::Atomic => selvedge_model::RegionKind::Atomic,
            Claim::Deterministic => selvedge_model::RegionKind::Deterministic,
        };
        let here = Location::caller();
        let checked = crate::exec::ops::enter(name, kind, here).map(|region| (region, kind, here));
        // A check switches between its threads inside one thread of the process.
        let marked = checked.is_none().then(|| native::Mark::new(name, claim));
        Block { checked, _marked: marked }
    }

    #[cfg(not(feature = "check"))]
    #[inline(always)]
    pub(crate) fn enter(name: &str, claim: Claim) -> Block {
        Block { _marked: Some(native::Mark::new(name, claim)) }
    }
}

#[cfg(feature = "check")]
impl Drop for Block {
    fn drop(&mut self) {
        if let Some((region, kind, here)) = self.checked {
            crate::exec::ops::exit(region, kind, here);
        }
    }
}

#[cfg(selvedge_native)]
mod native {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use super::Claim;

    unsafe extern "C" {
        fn selvedge_region_enter_named(name: *const u8, len: usize, kind: i32);
        fn selvedge_region_exit();
    }

    pub(super) struct Mark(());

    impl Mark {
        // Inlined, so that the call below is in the function that is marked and has its place.
        #[inline(always)]
        pub(super) fn new(name: &str, claim: Claim) -> Mark {
            let kind = match claim {
                Claim::Atomic => 0,
                Claim::Deterministic => 1,
            };
            let name = kept(name);
            // SAFETY: the runtime is linked into every program that is built with the flag that this
            // module asks for, and the name is never freed.
            unsafe { selvedge_region_enter_named(name.as_ptr(), name.len(), kind) };
            Mark(())
        }
    }

    impl Drop for Mark {
        fn drop(&mut self) {
            // SAFETY: the runtime is linked into every program that is built with the flag that this
            // module asks for, and the call has no arguments.
            unsafe { selvedge_region_exit() };
        }
    }

    /// A copy that stays, one for each name and thread: the observer reads it from outside, later. Not
    /// one for all threads, because sharing it would synchronize them.
    fn kept(name: &str) -> &'static str {
        thread_local! {
            static KEPT: RefCell<HashSet<&'static str>> = RefCell::default();
        }
        let of = |kept: &RefCell<HashSet<&'static str>>| {
            let mut kept = kept.borrow_mut();
            if let Some(known) = kept.get(name) {
                return *known;
            }
            let new: &'static str = Box::leak(name.into());
            kept.insert(new);
            new
        };
        KEPT.try_with(of).unwrap_or("region")
    }
}

#[cfg(not(selvedge_native))]
mod native {
    use super::Claim;

    /// No runtime observes the program.
    pub(super) struct Mark;

    impl Mark {
        #[inline(always)]
        pub(super) fn new(_name: &str, _claim: Claim) -> Mark {
            Mark
        }
    }
}

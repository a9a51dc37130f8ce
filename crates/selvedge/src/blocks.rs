//! What a deterministic block assumes and ensures, and what atomic blocks show.
//!
//! Executions that assume the same must ensure the same, whatever the schedule. In a check, every execution is
//! compared with all before it. In a program that `cargo selvedge` has built, the values go to the runtime that
//! observes or controls it. Everywhere else nothing happens here: values are not even looked at.

#![allow(unexpected_cfgs)] // `selvedge_native` is set by `cargo selvedge` alone.

use std::marker::PhantomData;

use crate::Same;
use crate::regions::{Block, Claim};

/// What can be compared across executions: what serde can turn into a value and back.
#[cfg(any(feature = "check", selvedge_native))]
pub trait Value: serde::Serialize + serde::de::DeserializeOwned + 'static {}

#[cfg(any(feature = "check", selvedge_native))]
impl<T: serde::Serialize + serde::de::DeserializeOwned + 'static> Value for T {}

/// What can be compared across executions. With the feature `check`, these are the types that serde can turn into
/// a value and back.
#[cfg(not(any(feature = "check", selvedge_native)))]
pub trait Value: 'static {}

#[cfg(not(any(feature = "check", selvedge_native)))]
impl<T: 'static> Value for T {}

/// What two executions of the block must have in common to be compared. Without any `assume`, all executions of the
/// block are compared.
///
/// It belongs to the innermost deterministic block of the thread or of the thread that started it.
///
/// # Panics
/// In a check: outside of every block, and after the first [`ensure`] of the block.
#[track_caller]
#[inline(always)]
pub fn assume<T: Value + PartialEq>(name: &str, value: &T) {
    said::by_equality(said::Word::Assume, name, value);
}

/// What must be the same in every execution of the block that assumes the same, by the type's own `==`.
///
/// ```should_panic
/// # use selvedge::{sync::{Arc, Mutex}, thread};
/// selvedge::check(|| {
///     let log = Arc::new(Mutex::new(Vec::new()));
///     selvedge::deterministic("log", || {
///         let theirs = Arc::clone(&log);
///         let thread = thread::spawn(move || theirs.lock().unwrap().push(1));
///         log.lock().unwrap().push(2);
///         thread.join().unwrap();
///         selvedge::ensure("order", &*log.lock().unwrap());
///     });
/// });
/// ```
///
/// # Panics
/// In a check: outside of every block.
#[track_caller]
#[inline(always)]
pub fn ensure<T: Value + PartialEq>(name: &str, value: &T) {
    said::by_equality(said::Word::Ensure, name, value);
}

/// As [`assume`], by another predicate.
///
/// # Panics
/// As [`assume`], and if the predicate is not reflexive or not symmetric, or panics.
#[track_caller]
#[inline(always)]
pub fn assume_by<T: Value>(name: &str, value: &T, same: impl Same<T>) {
    said::by_predicate(said::Word::Assume, name, value, same);
}

/// As [`ensure`], by another predicate: `ensure_by("sum", &sum, same::relative(1e-12))`.
///
/// # Panics
/// As [`ensure`], and if the predicate is not reflexive or not symmetric, or panics.
#[track_caller]
#[inline(always)]
pub fn ensure_by<T: Value>(name: &str, value: &T, same: impl Same<T>) {
    said::by_predicate(said::Word::Ensure, name, value, same);
}

/// What must be as in some execution in which every [atomic](crate::atomic) block runs alone, by the type's own `==`: a
/// result of a block, the final state, a summary of it. It may differ from execution to execution. Where anything is
/// observed, that decides whether blocks are atomic, and not whether their accesses conflict.
///
/// ```should_panic
/// # use selvedge::{sync::{Arc, atomic::{AtomicU32, Ordering::SeqCst}}, thread};
/// selvedge::check(|| {
///     let count = Arc::new(AtomicU32::new(0));
///     let add = |count: &AtomicU32| {
///         selvedge::atomic("add", || count.store(count.load(SeqCst) + 1, SeqCst));
///     };
///     let theirs = Arc::clone(&count);
///     let thread = thread::spawn(move || add(&theirs));
///     add(&count);
///     thread.join().unwrap();
///     selvedge::observe("count", &count.load(SeqCst));
/// });
/// ```
///
/// # Panics
/// In a check: if no execution enters an atomic block.
#[track_caller]
#[inline(always)]
pub fn observe<T: Value + PartialEq>(name: &str, value: &T) {
    said::by_equality(said::Word::Observe, name, value);
}

/// As [`observe`], by another predicate: `observe_by("elements", &list, same::multiset())`.
///
/// # Panics
/// As [`observe`], and if the predicate is not reflexive or not symmetric, or panics.
#[track_caller]
#[inline(always)]
pub fn observe_by<T: Value>(name: &str, value: &T, same: impl Same<T>) {
    said::by_predicate(said::Word::Observe, name, value, same);
}

/// Here the atomic block of this thread takes effect, as far as other threads can tell. A hint: it decides which order
/// of blocks is tried first, never which are tried.
///
/// # Panics
/// In a check: outside of every atomic block, and where the block reaches it a second time.
#[track_caller]
#[inline(always)]
pub fn linearization_point() {
    said::point();
}

/// The accesses that `f` makes tell the order of atomic blocks: a write, or the last read, before a write, or the last
/// read, of the same variable. A hint, as [`linearization_point`] is.
#[inline(always)]
pub fn distinguished<R>(f: impl FnOnce() -> R) -> R {
    said::distinguish(true);
    let result = f();
    said::distinguish(false);
    result
}

/// An atomic block from here until it is dropped, for code that is not one closure.
#[must_use = "the block ends when this is dropped"]
pub struct AtomicBlock {
    _block: Block,
    /// The thread that enters a block leaves it.
    here: PhantomData<*const ()>,
}

impl AtomicBlock {
    /// Enters the block, as [`atomic`](crate::atomic) does.
    #[track_caller]
    #[inline(always)]
    pub fn enter(name: &str) -> AtomicBlock {
        AtomicBlock { _block: Block::enter(name, Claim::Atomic), here: PhantomData }
    }
}

impl std::fmt::Debug for AtomicBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtomicBlock")
    }
}

/// Runs `f` as a deterministic block whose state, before and after, is kept for inference.
#[track_caller]
#[inline(always)]
pub fn deterministic_with<T: Value, R>(
    name: &str,
    state: &mut T,
    f: impl FnOnce(&mut T) -> R,
) -> R {
    let _block = DeterministicBlock::enter(name);
    said::state(said::Word::Before, state);
    let result = f(state);
    said::state(said::Word::After, state);
    result
}

/// A deterministic block from here until it is dropped, for code that is not one closure.
#[must_use = "the block ends when this is dropped"]
pub struct DeterministicBlock {
    _block: Block,
    /// The thread that enters a block leaves it.
    here: PhantomData<*const ()>,
}

impl DeterministicBlock {
    /// Enters the block, as [`deterministic`](crate::deterministic) does.
    #[track_caller]
    #[inline(always)]
    pub fn enter(name: &str) -> DeterministicBlock {
        DeterministicBlock { _block: Block::enter(name, Claim::Deterministic), here: PhantomData }
    }
}

impl std::fmt::Debug for DeterministicBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeterministicBlock")
    }
}

/// The block that a thread is in, for a thread that was started before, such as one of a pool.
#[derive(Clone, Copy, Debug)]
pub struct BlockToken {
    token: said::Token,
}

/// The innermost deterministic block of this thread, or of the thread that started it.
#[inline(always)]
pub fn block_token() -> BlockToken {
    BlockToken { token: said::token() }
}

impl BlockToken {
    /// This thread's calls belong to the block until the result is dropped.
    ///
    /// # Panics
    /// In a check, if the block has ended.
    #[track_caller]
    #[inline(always)]
    #[must_use = "the thread leaves the block when this is dropped"]
    pub fn join(self) -> JoinedBlock {
        said::join(self.token);
        JoinedBlock { here: PhantomData }
    }
}

/// A block that a thread has joined by a [`BlockToken`]. Dropping it leaves the block.
#[derive(Debug)]
pub struct JoinedBlock {
    here: PhantomData<*const ()>,
}

impl Drop for JoinedBlock {
    #[inline(always)]
    fn drop(&mut self) {
        said::leave();
    }
}

/// With values: to the executor of the check that runs here, or to the runtime.
#[cfg(any(feature = "check", selvedge_native))]
mod said {
    use std::panic::Location;

    use selvedge_specs::Predicate;
    pub(super) use selvedge_specs::Word;

    use crate::values::{self, Rule};
    use crate::{Same, Value};

    // All is inlined, so that what the runtime is told has the place of the call.
    #[track_caller]
    #[inline(always)]
    pub(super) fn by_equality<T: Value + PartialEq>(word: Word, name: &str, value: &T) {
        let here = Location::caller();
        say(word, name, value, here, values::equal::<T>);
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn by_predicate<T: Value>(word: Word, name: &str, value: &T, same: impl Same<T>) {
        let here = Location::caller();
        say(word, name, value, here, || same.rule(here));
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn state<T: Value>(word: Word, value: &T) {
        let here = Location::caller();
        say(word, "state", value, here, || Rule::Predicate(Predicate::Exact));
    }

    #[inline(always)]
    fn say<T: Value>(
        word: Word,
        name: &str,
        value: &T,
        here: &'static Location<'static>,
        rule: impl FnOnce() -> Rule,
    ) {
        #[cfg(feature = "check")]
        if crate::exec::blocks::listens() {
            // Both may run code of the program, so not while the executor is in use.
            let value = selvedge_specs::Value::of(value);
            let predicate = rule().predicate();
            crate::exec::blocks::say(word, name, predicate, value, here);
            return;
        }
        let _ = here;
        #[cfg(selvedge_native)]
        crate::native::say(word, name, value, rule);
        #[cfg(not(selvedge_native))]
        let _ = (word, name, value, rule);
    }

    /// The block that a thread is in: of the check that runs here, and as the runtime knows it.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Token {
        #[cfg(feature = "check")]
        checked: Option<crate::exec::blocks::Token>,
        #[cfg(selvedge_native)]
        native: u64,
    }

    #[inline(always)]
    pub(super) fn token() -> Token {
        Token {
            #[cfg(feature = "check")]
            checked: crate::exec::blocks::token(),
            #[cfg(selvedge_native)]
            native: crate::native::token(),
        }
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn join(token: Token) {
        #[cfg(feature = "check")]
        if let Some(token) = token.checked {
            return crate::exec::blocks::join(token);
        }
        #[cfg(selvedge_native)]
        crate::native::join(token.native);
        let _ = token;
    }

    pub(super) fn leave() {
        #[cfg(feature = "check")]
        let checked = crate::exec::blocks::leave();
        #[cfg(not(feature = "check"))]
        let checked = false;
        #[cfg(selvedge_native)]
        if !checked {
            crate::native::leave();
        }
        let _ = checked;
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn point() {
        #[cfg(feature = "check")]
        let checked = crate::exec::blocks::point();
        #[cfg(not(feature = "check"))]
        let checked = false;
        #[cfg(selvedge_native)]
        if !checked {
            crate::native::mark(crate::native::Mark::Point);
        }
        let _ = checked;
    }

    #[inline(always)]
    pub(super) fn distinguish(on: bool) {
        #[cfg(feature = "check")]
        let checked = crate::exec::blocks::distinguish(on);
        #[cfg(not(feature = "check"))]
        let checked = false;
        #[cfg(selvedge_native)]
        if !checked {
            let begins = crate::native::Mark::Distinguish;
            crate::native::mark(if on { begins } else { crate::native::Mark::Indistinct });
        }
        let _ = (on, checked);
    }
}

/// Without: nothing.
#[cfg(not(any(feature = "check", selvedge_native)))]
mod said {
    use crate::{Same, Value};

    pub(super) type Token = ();

    #[derive(Clone, Copy)]
    pub(super) enum Word {
        Assume,
        Ensure,
        Observe,
        Before,
        After,
    }

    #[inline(always)]
    pub(super) fn by_equality<T: Value + PartialEq>(_: Word, _: &str, _: &T) {}
    #[inline(always)]
    pub(super) fn by_predicate<T: Value>(_: Word, _: &str, _: &T, _: impl Same<T>) {}
    #[inline(always)]
    pub(super) fn state<T: Value>(_: Word, _: &T) {}
    #[inline(always)]
    pub(super) fn token() -> Token {}
    #[inline(always)]
    pub(super) fn join((): Token) {}
    #[inline(always)]
    pub(super) fn leave() {}
    #[inline(always)]
    pub(super) fn point() {}
    #[inline(always)]
    pub(super) fn distinguish(_: bool) {}
}

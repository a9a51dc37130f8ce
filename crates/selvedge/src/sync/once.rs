//! One-time initialisation, and barriers.
//!
//! `Once` is a lock over a state, as in the standard library's oldest versions: the thread that
//! initialises holds the executor's lock, others wait for it. Reading a value that is there is a load.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync as std_sync;
use std::sync::atomic::{AtomicU8, Ordering};

use selvedge_model::{AtomicOp, LoadOrder, Mode, StoreOrder};

use crate::exec::fiber::controlled;
use crate::exec::ops;
use crate::exec::slot::Slot;

type Here = &'static Location<'static>;

/// The part of one-time initialisation that concerns waiting and order.
#[derive(Debug)]
struct Gate {
    lock: Slot,
    flag: Slot,
    // ordering: relaxed. Inside a check one OS thread runs; outside, `inner` types synchronise.
    state: AtomicU8,
}

const NEW: u8 = 0;
const POISONED: u8 = 1;
const DONE: u8 = 2;

impl Gate {
    #[track_caller]
    const fn new() -> Gate {
        Gate { lock: Slot::new(), flag: Slot::new(), state: AtomicU8::new(NEW) }
    }

    /// Looks whether initialisation is over. Inside a check that is a step.
    fn look(&self, here: Here) -> u8 {
        let load = AtomicOp::Load(LoadOrder::Acquire);
        ops::atomic(&self.flag, load, here);
        let state = self.state.load(Ordering::Relaxed);
        ops::atomic_done(&self.flag, load, here);
        state
    }

    fn set(&self, state: u8, here: Here) {
        self.state.store(state, Ordering::Relaxed);
        ops::atomic_done(&self.flag, AtomicOp::Store(StoreOrder::Release), here);
    }

    /// Runs `f` unless initialisation is over, with the others waiting meanwhile. `f` says whether
    /// it is over then.
    fn pass(&self, here: Here, f: impl FnOnce(u8) -> bool) {
        if self.look(here) == DONE {
            return;
        }
        ops::acquire(&self.lock, Mode::Exclusive, here);
        let state = self.state.load(Ordering::Relaxed);
        let result =
            if state == DONE { Ok(true) } else { catch_unwind(AssertUnwindSafe(|| f(state))) };
        match result {
            Ok(true) if state != DONE => self.set(DONE, here),
            Ok(_) => {}
            Err(_) => self.set(POISONED, here),
        }
        ops::release(&self.lock, Mode::Exclusive, here);
        if let Err(payload) = result {
            resume_unwind(payload);
        }
    }
}

/// See [`std::sync::Once`].
pub struct Once {
    gate: Gate,
    inner: std_sync::Once,
}

/// See [`std::sync::OnceState`].
#[derive(Debug)]
pub struct OnceState {
    poisoned: bool,
    /// Not shared between threads, as the standard library's is not.
    local: PhantomData<Cell<bool>>,
}

impl OnceState {
    fn new(poisoned: bool) -> OnceState {
        OnceState { poisoned, local: PhantomData }
    }
}

impl OnceState {
    /// See [`std::sync::OnceState::is_poisoned`].
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

impl Once {
    /// See [`std::sync::Once::new`].
    #[track_caller]
    pub const fn new() -> Once {
        Once { gate: Gate::new(), inner: std_sync::Once::new() }
    }

    /// See [`std::sync::Once::call_once`].
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if !controlled() {
            return self.inner.call_once(f);
        }
        self.gate.pass(Location::caller(), |state| {
            assert!(state != POISONED, "Once instance has previously been poisoned");
            f();
            true
        });
        self.inner.call_once(|| {});
    }

    /// See [`std::sync::Once::call_once_force`].
    #[track_caller]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        if !controlled() {
            return self.inner.call_once_force(|s| f(&OnceState::new(s.is_poisoned())));
        }
        self.gate.pass(Location::caller(), |state| {
            f(&OnceState::new(state == POISONED));
            true
        });
        self.inner.call_once_force(|_| {});
    }

    /// See [`std::sync::Once::is_completed`].
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        if controlled() {
            self.gate.look(Location::caller()) == DONE || self.inner.is_completed()
        } else {
            self.inner.is_completed()
        }
    }

    /// See [`std::sync::Once::wait`].
    #[track_caller]
    pub fn wait(&self) {
        if !controlled() {
            return self.inner.wait();
        }
        while !self.is_completed() {
            assert!(
                self.gate.state.load(Ordering::Relaxed) != POISONED,
                "Once instance has previously been poisoned"
            );
            ops::yield_now(Location::caller());
        }
    }
}

impl Default for Once {
    #[track_caller]
    fn default() -> Once {
        Once::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

/// See [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    gate: Gate,
    inner: std_sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// See [`std::sync::OnceLock::new`].
    #[track_caller]
    pub const fn new() -> OnceLock<T> {
        OnceLock { gate: Gate::new(), inner: std_sync::OnceLock::new() }
    }

    /// See [`std::sync::OnceLock::get`].
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        if controlled() {
            self.gate.look(Location::caller());
        }
        self.inner.get()
    }

    /// See [`std::sync::OnceLock::get_mut`].
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.inner.get_mut()
    }

    /// See [`std::sync::OnceLock::set`].
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("an initialiser runs once"));
        match value {
            None => Ok(()),
            Some(value) => Err(value),
        }
    }

    /// See [`std::sync::OnceLock::get_or_init`].
    #[track_caller]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        if !controlled() {
            return self.inner.get_or_init(f);
        }
        if self.inner.get().is_some() {
            // The gate may not know: a static may have been initialised by an execution before.
            self.gate.look(Location::caller());
        } else {
            self.gate.pass(Location::caller(), |_| {
                // A thread that fails to initialise leaves the next one to try.
                let value = f();
                assert!(self.inner.set(value).is_ok(), "reentrant init");
                true
            });
        }
        self.inner.get().expect("initialised above")
    }

    /// See [`std::sync::OnceLock::wait`].
    #[track_caller]
    pub fn wait(&self) -> &T {
        if !controlled() {
            return self.inner.wait();
        }
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            ops::yield_now(Location::caller());
        }
    }

    /// See [`std::sync::OnceLock::into_inner`].
    pub fn into_inner(self) -> Option<T> {
        self.inner.into_inner()
    }

    /// See [`std::sync::OnceLock::take`].
    pub fn take(&mut self) -> Option<T> {
        *self.gate.state.get_mut() = NEW;
        self.inner.take()
    }
}

impl<T> Default for OnceLock<T> {
    #[track_caller]
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    #[track_caller]
    fn from(value: T) -> OnceLock<T> {
        OnceLock { gate: Gate::new(), inner: std_sync::OnceLock::from(value) }
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    #[track_caller]
    fn clone(&self) -> OnceLock<T> {
        OnceLock { gate: Gate::new(), inner: self.inner.clone() }
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &OnceLock<T>) -> bool {
        self.inner == other.inner
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

/// See [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    value: OnceLock<T>,
    init: std_sync::Mutex<Cell<Option<F>>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// See [`std::sync::LazyLock::new`].
    #[track_caller]
    pub const fn new(f: F) -> LazyLock<T, F> {
        LazyLock { value: OnceLock::new(), init: std_sync::Mutex::new(Cell::new(Some(f))) }
    }

    /// See [`std::sync::LazyLock::force`].
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        this.value.get_or_init(|| {
            let init = this.init.lock().unwrap_or_else(std_sync::PoisonError::into_inner).take();
            let Some(init) = init else {
                panic!("LazyLock instance has previously been poisoned");
            };
            init()
        })
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;
    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    #[track_caller]
    fn default() -> LazyLock<T> {
        LazyLock::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("LazyLock");
        match self.value.inner.get() {
            Some(value) => tuple.field(value),
            None => tuple.field(&format_args!("<uninit>")),
        };
        tuple.finish()
    }
}

/// See [`std::sync::Barrier`].
pub struct Barrier {
    slot: Slot,
    parties: usize,
    inner: std_sync::Barrier,
}

/// See [`std::sync::BarrierWaitResult`].
#[derive(Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// See [`std::sync::BarrierWaitResult::is_leader`].
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// See [`std::sync::Barrier::new`].
    #[track_caller]
    pub const fn new(n: usize) -> Barrier {
        Barrier { slot: Slot::new(), parties: n, inner: std_sync::Barrier::new(n) }
    }

    /// See [`std::sync::Barrier::wait`].
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        match ops::barrier(&self.slot, self.parties, Location::caller()) {
            Some(leader) => BarrierWaitResult(leader),
            None => BarrierWaitResult(self.inner.wait().is_leader()),
        }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}

//! Cells whose accesses are tracked.
//!
//! Unsafe code shares plain data and promises that something else orders its accesses. Put such data in
//! a [`RaceCell`] (or an [`UnsafeCell`], through `with` and `with_mut`), and inside a check every access
//! is a scheduling point and every pair of them that nothing orders is reported as a data race.

use std::fmt;
use std::panic::Location;

pub use std::cell::{BorrowError, BorrowMutError, LazyCell, OnceCell, Ref, RefCell, RefMut};

use crate::exec::ops;
use crate::exec::slot::Slot;

/// Identity of a cell. The executor sees when it is dropped, and so which thread owned the cell last.
#[derive(Debug)]
struct Mark(Slot);

impl Mark {
    #[track_caller]
    const fn new() -> Mark {
        Mark(Slot::new())
    }

    #[inline]
    fn read(&self, here: &'static Location<'static>) {
        ops::access(&self.0, false, here);
    }

    #[inline]
    fn write(&self, here: &'static Location<'static>) {
        ops::access(&self.0, true, here);
    }
}

impl Drop for Mark {
    #[inline]
    fn drop(&mut self) {
        ops::destroy(&self.0);
    }
}

/// See [`std::cell::UnsafeCell`]. Accesses through [`with`](UnsafeCell::with) and
/// [`with_mut`](UnsafeCell::with_mut) are tracked, those through [`get`](UnsafeCell::get) are not.
pub struct UnsafeCell<T: ?Sized> {
    mark: Mark,
    value: std::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    /// See [`std::cell::UnsafeCell::new`].
    #[track_caller]
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell { mark: Mark::new(), value: std::cell::UnsafeCell::new(value) }
    }

    /// See [`std::cell::UnsafeCell::into_inner`].
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// See [`std::cell::UnsafeCell::get`]. Accesses through the pointer are not tracked.
    pub const fn get(&self) -> *mut T {
        self.value.get()
    }

    /// See [`std::cell::UnsafeCell::get_mut`]. Not an access that could race.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Reads through a pointer that is valid while `f` runs.
    #[track_caller]
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.mark.read(Location::caller());
        f(self.value.get())
    }

    /// Writes through a pointer that is valid while `f` runs.
    #[track_caller]
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.mark.write(Location::caller());
        f(self.value.get())
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    #[track_caller]
    fn default() -> UnsafeCell<T> {
        UnsafeCell::new(T::default())
    }
}

impl<T> From<T> for UnsafeCell<T> {
    #[track_caller]
    fn from(value: T) -> UnsafeCell<T> {
        UnsafeCell::new(value)
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}

/// Plain data that threads share, for unsafe code that orders its accesses by other means.
pub struct RaceCell<T: ?Sized>(UnsafeCell<T>);

// SAFETY: the methods that reach the value through a shared reference are unsafe or give out pointers,
// and their callers promise to have ordered the accesses; then a value that may be sent may be used by
// each in turn.
unsafe impl<T: ?Sized + Send> Sync for RaceCell<T> {}

impl<T> RaceCell<T> {
    /// A cell with a value.
    #[track_caller]
    pub const fn new(value: T) -> RaceCell<T> {
        RaceCell(UnsafeCell::new(value))
    }

    /// The value, by its owner.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// A copy of the value.
    ///
    /// # Safety
    /// No write may be unordered with this read. Inside a check such a pair is reported and does no
    /// harm.
    #[track_caller]
    #[inline]
    pub unsafe fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: the caller's promise; inside a check one OS thread runs, and no reference into the
        // cell is kept across a point by this method.
        self.0.with(|value| unsafe { *value })
    }

    /// Replaces the value.
    ///
    /// # Safety
    /// No access may be unordered with this write. Inside a check such a pair is reported and does no
    /// harm.
    #[track_caller]
    #[inline]
    pub unsafe fn set(&self, value: T) {
        // SAFETY: as in `get`.
        let old = self.0.with_mut(|place| unsafe { std::ptr::replace(place, value) });
        drop(old);
    }
}

impl<T: ?Sized> RaceCell<T> {
    /// The value, by its owner. Not an access that could race.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Reads through a pointer that is valid while `f` runs.
    #[track_caller]
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    /// Writes through a pointer that is valid while `f` runs.
    #[track_caller]
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

impl<T: Default> Default for RaceCell<T> {
    #[track_caller]
    fn default() -> RaceCell<T> {
        RaceCell::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for RaceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaceCell").finish_non_exhaustive()
    }
}

/// See [`std::cell::Cell`]. Only unsafe code can share it between threads; if it does, the accesses are
/// tracked.
pub struct Cell<T: ?Sized> {
    mark: Mark,
    value: std::cell::Cell<T>,
}

impl<T> Cell<T> {
    /// See [`std::cell::Cell::new`].
    #[track_caller]
    pub const fn new(value: T) -> Cell<T> {
        Cell { mark: Mark::new(), value: std::cell::Cell::new(value) }
    }

    /// See [`std::cell::Cell::get`].
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        self.mark.read(Location::caller());
        self.value.get()
    }

    /// See [`std::cell::Cell::set`].
    #[track_caller]
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// See [`std::cell::Cell::replace`].
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        self.mark.write(Location::caller());
        self.value.replace(value)
    }

    /// See [`std::cell::Cell::take`].
    #[track_caller]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// See [`std::cell::Cell::swap`].
    #[track_caller]
    pub fn swap(&self, other: &Cell<T>) {
        self.mark.write(Location::caller());
        other.mark.write(Location::caller());
        self.value.swap(&other.value);
    }

    /// See [`std::cell::Cell::into_inner`].
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Cell<T> {
    /// See [`std::cell::Cell::as_ptr`]. Accesses through the pointer are not tracked.
    pub const fn as_ptr(&self) -> *mut T {
        self.value.as_ptr()
    }

    /// See [`std::cell::Cell::get_mut`].
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: Copy> Clone for Cell<T> {
    #[track_caller]
    fn clone(&self) -> Cell<T> {
        Cell::new(self.get())
    }
}

impl<T: Default> Default for Cell<T> {
    #[track_caller]
    fn default() -> Cell<T> {
        Cell::new(T::default())
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

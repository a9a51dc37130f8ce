//! Cells: the standard library's `Cell`, and ours without tracking.

pub use std::cell::{BorrowError, BorrowMutError, Cell, LazyCell, OnceCell, Ref, RefCell, RefMut};

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Default)]
        pub struct $name<T: ?Sized>(std::cell::UnsafeCell<T>);

        impl<T> $name<T> {
            /// A cell with a value.
            #[inline(always)]
            pub const fn new(value: T) -> Self {
                Self(std::cell::UnsafeCell::new(value))
            }

            /// The value, by its owner.
            #[inline(always)]
            pub fn into_inner(self) -> T {
                self.0.into_inner()
            }
        }

        impl<T: ?Sized> $name<T> {
            /// The value, by its owner.
            #[inline(always)]
            pub fn get_mut(&mut self) -> &mut T {
                self.0.get_mut()
            }

            /// Reads through a pointer that is valid while `f` runs.
            #[inline(always)]
            pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
                f(self.0.get())
            }

            /// Writes through a pointer that is valid while `f` runs.
            #[inline(always)]
            pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
                f(self.0.get())
            }
        }

        impl<T: ?Sized> std::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

cells! {
    /// See [`std::cell::UnsafeCell`].
    UnsafeCell
    /// Plain data that threads share, for unsafe code that orders its accesses by other means.
    RaceCell
}

impl<T: ?Sized> UnsafeCell<T> {
    /// See [`std::cell::UnsafeCell::get`].
    #[inline(always)]
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}

// SAFETY: the methods that reach the value through a shared reference are unsafe or give pointers.
unsafe impl<T: ?Sized + Send> Sync for RaceCell<T> {}

impl<T> RaceCell<T> {
    /// A copy of the value.
    ///
    /// # Safety
    /// No write may be unordered with this read.
    #[inline(always)]
    pub unsafe fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() }
    }

    /// Replaces the value.
    ///
    /// # Safety
    /// No access may be unordered with this write.
    #[inline(always)]
    pub unsafe fn set(&self, value: T) {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() = value };
    }
}

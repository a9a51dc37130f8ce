//! Thread-local storage: the API of [`std::thread::LocalKey`], per controlled thread.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use crate::exec::Local;
use crate::exec::fiber::with;

/// See [`std::thread_local!`].
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = const $init:block; $($rest:tt)*) => {
        $crate::thread_local!($(#[$attr])* $vis static $name: $t = const $init);
        $crate::thread_local!($($rest)*);
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = const $init:block) => {
        $crate::thread_local!($(#[$attr])* $vis static $name: $t = $init);
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = $init:expr; $($rest:tt)*) => {
        $crate::thread_local!($(#[$attr])* $vis static $name: $t = $init);
        $crate::thread_local!($($rest)*);
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = $init:expr) => {
        $(#[$attr])*
        $vis const $name: $crate::thread::LocalKey<$t> = {
            fn init() -> $t { $init }
            ::std::thread_local!(static STD: $t = init());
            // One static, however often the constant is used: its address is the key.
            static MARK: u8 = 0;
            $crate::thread::LocalKey::new(&MARK, init, &STD)
        };
    };
}

/// See [`std::thread::LocalKey`].
pub struct LocalKey<T: 'static> {
    mark: &'static u8,
    init: fn() -> T,
    std: &'static std::thread::LocalKey<T>,
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

pub(crate) fn key_of(mark: &'static u8) -> usize {
    std::ptr::from_ref(mark) as usize
}

/// Stands where a value has been destroyed.
struct Destroyed;

enum Found<T> {
    Outside,
    Value(Rc<T>),
    Missing,
    Destroyed,
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn new(
        mark: &'static u8,
        init: fn() -> T,
        std: &'static std::thread::LocalKey<T>,
    ) -> LocalKey<T> {
        LocalKey { mark, init, std }
    }

    fn find(&self) -> Found<T> {
        let key = key_of(self.mark);
        let found = with(|e| {
            let locals = &e.threads[e.current.index()].locals;
            locals.iter().find(|l| l.key == key).map(|l| Rc::clone(&l.value))
        });
        match found {
            None => Found::Outside,
            Some(None) => Found::Missing,
            Some(Some(value)) => match value.downcast::<T>() {
                Ok(value) => Found::Value(value),
                Err(_) => Found::Destroyed,
            },
        }
    }

    /// The value of this thread, made if it was not there. The initialiser is user code, so it runs
    /// outside the executor, and may itself have made the value in between.
    fn value(&self) -> Option<Result<Rc<T>, ()>> {
        match self.find() {
            Found::Outside => return None,
            Found::Value(value) => return Some(Ok(value)),
            Found::Destroyed => return Some(Err(())),
            Found::Missing => {}
        }
        let value = Rc::new((self.init)());
        let key = key_of(self.mark);
        let stored: Rc<dyn Any> = Rc::clone(&value) as Rc<dyn Any>;
        let replaced = with(|e| {
            let locals = &mut e.threads[e.current.index()].locals;
            match locals.iter_mut().find(|l| l.key == key) {
                Some(there) => Some(std::mem::replace(&mut there.value, stored)),
                None => {
                    let stays = !std::mem::needs_drop::<T>();
                    locals.push(Local { key, value: stored, stays });
                    None
                }
            }
        });
        drop(replaced);
        Some(Ok(value))
    }

    /// See [`std::thread::LocalKey::with`].
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.value() {
            None => self.std.with(f),
            Some(Ok(value)) => f(&value),
            Some(Err(())) => panic!(
                "cannot access a Thread Local Storage value during or after destruction: AccessError"
            ),
        }
    }

    /// See [`std::thread::LocalKey::try_with`].
    pub fn try_with<F, R>(&'static self, f: F) -> Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        match self.value() {
            None => self.std.try_with(f).map_err(|_| AccessError),
            Some(Ok(value)) => Ok(f(&value)),
            Some(Err(())) => Err(AccessError),
        }
    }
}

/// See [`std::thread::AccessError`].
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Debug for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessError")
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("already destroyed")
    }
}

impl std::error::Error for AccessError {}

/// The standard library's cell, and ours whose accesses are seen.
macro_rules! cells {
    ($($cell:ty)*) => {$(
        impl<T: 'static> LocalKey<$cell> {
            /// See [`std::thread::LocalKey::set`].
            pub fn set(&'static self, value: T) {
                self.with(|cell| cell.set(value));
            }

            /// See [`std::thread::LocalKey::get`].
            pub fn get(&'static self) -> T
            where
                T: Copy,
            {
                self.with(|cell| cell.get())
            }

            /// See [`std::thread::LocalKey::take`].
            pub fn take(&'static self) -> T
            where
                T: Default,
            {
                self.with(|cell| cell.take())
            }

            /// See [`std::thread::LocalKey::replace`].
            pub fn replace(&'static self, value: T) -> T {
                self.with(|cell| cell.replace(value))
            }
        }
    )*};
}

cells!(Cell<T> crate::cell::Cell<T>);

impl<T: 'static> LocalKey<RefCell<T>> {
    /// See [`std::thread::LocalKey::with_borrow`].
    pub fn with_borrow<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        self.with(|cell| f(&cell.borrow()))
    }

    /// See [`std::thread::LocalKey::with_borrow_mut`].
    pub fn with_borrow_mut<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&mut T) -> R,
    {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// See [`std::thread::LocalKey::set`].
    pub fn set(&'static self, value: T) {
        self.with(|cell| drop(cell.replace(value)));
    }

    /// See [`std::thread::LocalKey::take`].
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// See [`std::thread::LocalKey::replace`].
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

/// Destroys the values of the current thread, in the order in which they were made, and those that
/// their destructors make. While it is being destroyed a value is not there any more.
pub(crate) fn destroy_all() {
    let mut next = 0;
    while let Some(value) = with(|e| {
        let locals = &mut e.threads[e.current.index()].locals;
        let place = next + locals.get(next..)?.iter().position(|l| !l.stays)?;
        next = place + 1;
        Some(std::mem::replace(&mut locals[place].value, Rc::new(Destroyed)))
    })
    .flatten()
    {
        drop(value);
    }
}

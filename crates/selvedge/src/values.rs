//! Values that a block hands over, and the program's own predicates.
//!
//! A value is kept in a form of its own ([`selvedge_specs::Value`]), because the executions that are compared are not
//! the ones that run. To call a predicate of the program, the values become the program's type again. A predicate is
//! known by the place of its call and the type, so it can be called after its execution is over, on another OS thread.

use std::any::{TypeId, type_name};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

use selvedge_specs::{Predicate, Value as Kept};

use crate::Value;

/// A predicate as the type that it is about does not matter any more.
pub type Callback = Arc<dyn Fn(&Kept, &Kept) -> Result<bool, String> + Send + Sync>;

/// When two values count as the same.
#[allow(missing_debug_implementations)]
pub enum Rule {
    /// By a predicate that everybody knows.
    Predicate(Predicate),
    /// By code of the program.
    Own {
        /// What it is known by.
        name: Box<str>,
        /// The code.
        callback: Callback,
        /// The same as the runtime calls it.
        #[cfg(selvedge_native)]
        native: Same,
    },
}

/// A predicate as the runtime calls it: not 0 if two values are the same.
#[cfg(selvedge_native)]
pub type Same = unsafe extern "C" fn(
    *const std::ffi::c_void,
    usize,
    *const std::ffi::c_void,
    usize,
) -> std::ffi::c_int;

fn callback<T: Value>(same: impl Fn(&T, &T) -> bool + Send + Sync + 'static) -> Callback {
    Arc::new(move |a, b| {
        let of = |value: &Kept| {
            value.to::<T>().map_err(|e| format!("{value} is not a {}: {e}", type_name::<T>()))
        };
        let (a, b) = (of(a)?, of(b)?);
        catch_unwind(AssertUnwindSafe(|| same(&a, &b))).map_err(|payload| {
            let text = payload.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            format!("it panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
        })
    })
}

fn own<T: Value, F: Fn(&T, &T) -> bool + Send + Sync + 'static>(name: String, same: F) -> Rule {
    Rule::Own {
        name: name.into(),
        callback: callback(same),
        #[cfg(selvedge_native)]
        native: crate::native::same_of::<T, F>,
    }
}

/// A predicate of the program that is handed over at a place.
pub fn shared<T: Value>(
    here: &'static Location<'static>,
    same: impl Fn(&T, &T) -> bool + Send + Sync + 'static,
) -> Rule {
    own(format!("{} at {here}", type_name::<T>()), same)
}

/// The type's own `==`. Where it is known to be that of the kept form, the kept form will do.
pub(crate) fn equal<T: Value + PartialEq>() -> Rule {
    let name = type_name::<T>();
    if is_plain(TypeId::of::<T>()) {
        return Rule::Predicate(Predicate::Exact);
    }
    own(format!("{name} =="), |a: &T, b: &T| a == b)
}

/// Numbers, text and sequences of them are equal as they are kept.
fn is_plain(id: TypeId) -> bool {
    macro_rules! any {
        ($($type:ty),*) => {
            [$(TypeId::of::<$type>(), TypeId::of::<Vec<$type>>(), TypeId::of::<Vec<Vec<$type>>>()),*]
        };
    }
    any!(
        bool, char, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64,
        String
    )
    .contains(&id)
}

/// Calls the program's own predicates.
#[cfg(feature = "check")]
mod callbacks {
    use std::collections::HashMap;
    use std::sync::{LazyLock, PoisonError, RwLock};

    use selvedge_specs::{Judge, Predicate, Value as Kept};

    use super::{Callback, Rule};

    static KNOWN: LazyLock<RwLock<HashMap<Box<str>, Callback>>> = LazyLock::new(RwLock::default);

    impl Rule {
        /// The predicate, after the program's code has been made known.
        pub(crate) fn predicate(self) -> Predicate {
            match self {
                Rule::Predicate(predicate) => predicate,
                Rule::Own { name, callback, .. } => known_by(name, callback),
            }
        }
    }

    /// The predicate that is this code from now on, wherever it is called by this name.
    pub(crate) fn known_by(name: Box<str>, callback: Callback) -> Predicate {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.clone(), callback);
        Predicate::Callback(name)
    }

    /// Calls the program's own predicates.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Callbacks;

    impl Judge for Callbacks {
        fn same(&mut self, name: &str, a: &Kept, b: &Kept) -> Result<bool, String> {
            let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
            let callback = known.get(name).cloned();
            drop(known);
            callback.ok_or_else(|| "this program has no such predicate".to_owned())?(a, b)
        }
    }
}

#[cfg(feature = "check")]
pub(crate) use callbacks::{Callbacks, known_by};
